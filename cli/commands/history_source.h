// Source of history, explain and events: the running daemon, or the files of a stopped one. Both
// give the same replies.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/output/print.h"
#include "protocol/protocol.h"

namespace cgphase {

using Ask = std::function<OrComplaint<nlohmann::json>(const Request&)>;

// Returns a function that sends a request to the socket of `options`, or answers it from the
// history in `state_dir` if that is not empty. Complaints: invalid (`state_dir` is in use by a
// daemon or contains no history), denied.
//
// Files answer history (by name, and by record with rows), explain and events. Complaints of a
// reply: no_container, invalid (a journal of an older schema), failure.
OrComplaint<Ask> history_source(const CommonOptions& options, const std::string& state_dir);

}  // namespace cgphase
