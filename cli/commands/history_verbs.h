// What the daemon, or the files of one that has stopped, tell page by page: history and events.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/options.h"
#include "protocol/protocol.h"

namespace cgphase {

// One line on standard error: that not all of the history is told (HostHistory::incomplete).
void complain_incomplete(const std::string& sentence);
// The same where a reply says that the daemon tells only of what it has in memory, and why.
void warn_unreadable(const nlohmann::json& reply);

// Each prints and returns the exit code. `request` is for the daemon, of verb history or events;
// its limit is of all pages together. Out of the files in `state_dir` where that is not empty.
int tell_history(Request request, const std::string& state_dir, const CommonOptions& options);
int tell_events(Request request, const std::string& state_dir, const CommonOptions& options);
// From now on, or from when the request says. Ends with the daemon.
int follow_events(Request request, CommonOptions options);

}  // namespace cgphase
