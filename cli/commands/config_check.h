// Whether a configuration is good: what cgphased says, which is run to check it and nothing else.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/output/print.h"

namespace cgphase {

// cgphased beside this program, else the installed one; empty where there is none.
std::string find_daemon_program();

// `program` is cgphased; `file` empty: the one that the service reads. {"file", "valid": true}, or
// a complaint with the daemon's exit code (invalid, denied, failure) and its sentence, which names
// file, line and column where a file is at fault.
OrComplaint<nlohmann::json> check_configuration(const std::string& program,
                                                const std::string& file);

}  // namespace cgphase
