// Who is asked about the history: the daemon that runs, or the files of one that has stopped, of
// which the same answers are made.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/output/print.h"
#include "protocol/protocol.h"

namespace cgphase {

using Ask = std::function<OrComplaint<nlohmann::json>(const Request&)>;

// Asks at the socket of `options`, or where `state_dir` is not empty reads the history there.
// Complaints: invalid (a state_dir that a daemon has in use or that holds no history), denied.
//
// Out of files are answered: history by name and by record with rows, explain, events. Complaints
// of an answer: no_container, invalid (a journal of an older schema), failure.
OrComplaint<Ask> history_source(const CommonOptions& options, const std::string& state_dir);

}  // namespace cgphase
