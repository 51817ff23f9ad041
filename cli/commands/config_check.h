// Checks a configuration by running cgphased --check-config.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/output/print.h"

namespace cgphase {

// Returns the path of cgphased beside this program, else of the installed one; empty if there is
// none.
std::string find_daemon_program();

// Checks `file`, or the service's configuration if `file` is empty. `program` is the path of
// cgphased. Returns {"file", "valid": true, "warnings": [TEXT, ...]}. Complaints: the daemon's exit
// code (invalid, denied, failure) with its message, which names file, line and column of an error.
OrComplaint<nlohmann::json> check_configuration(const std::string& program,
                                                const std::string& file);

}  // namespace cgphase
