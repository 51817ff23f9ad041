// history and events, read page by page from the daemon or from the files of a stopped one.
#pragma once

#include <string>

#include "cli/options.h"
#include "protocol/requests.h"

namespace cgphase {

// Prints one line on standard error: part of the history is missing (HostHistory::incomplete).
void complain_incomplete(const std::string& sentence);

// Each prints the result and returns the exit code. The limit of the request
// is for all pages together. If `state_dir` is not empty, its files are read instead of asking the
// daemon.
int run_history(HistoryRequest request, const std::string& state_dir, const CommonOptions& options);
int run_events(EventsRequest request, const std::string& state_dir, const CommonOptions& options);
// Prints events from now on, or from the start of the request. Ends when the daemon does.
int follow_events(EventsRequest request, CommonOptions options);

}  // namespace cgphase
