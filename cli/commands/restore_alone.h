// `restore --all` where no daemon answers: runs cgphase-restore, which needs only the leases.
#pragma once

#include <expected>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/daemon_client.h"

namespace cgphase {

// cgphase-restore beside this program, else in /usr/lib/cgphase; empty where there is none.
std::string find_restore_program();

// Runs it and waits. The body has the form of an acting verb's reply (protocol/report.h).
std::expected<nlohmann::json, Complaint> restore_alone(const std::string& program,
                                                       const std::string& runtime_directory,
                                                       const std::string& cgroup_root);

}  // namespace cgphase
