// `restore --all` without a daemon: runs cgphase-restore, which needs only the leases.
#pragma once

#include <expected>
#include <string>

#include "cli/daemon_client.h"

namespace cgphase {

// Returns the path of cgphase-restore: beside this program, else in /usr/lib/cgphase; empty if
// there is none.
std::string find_restore_program();

// Runs cgphase-restore and waits. Returns a body like the reply to an acting verb
// (protocol/report.h).
std::expected<ActionReport, Complaint> restore_alone(const std::string& program,
                                                     const std::string& runtime_directory,
                                                     const std::string& cgroup_root);

}  // namespace cgphase
