// What a start of the daemon asks of this machine and of files before it touches anything. The
// start itself asks, and --check-config, so that nobody stops a daemon for one that would not run.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "agent/chosen_model.h"
#include "agent/config/config.h"
#include "cgroupfs/cgroup_root.h"
#include "protocol/protocol.h"

namespace cgphase {

// Why the daemon cannot start, and with which exit code.
struct Refusal {
  Exit exit = Exit::failure;
  std::string text;
};
template <class T>
using Started = std::expected<T, Refusal>;

// A start fails because of a permission, the disk, or an error that stays until an administrator
// corrects it. After the last, a restart does not help (RestartPreventExitStatus=6).
std::unexpected<Refusal> refuse(const Error& error);

// The cgroups that `config` names, or those that are mounted. Refused if its mode needs more.
Started<CgroupRoot> ready_root(const Config& config);

// The model that a daemon with `config` runs.
Started<ChosenModel> ready_model(const Config& config);

// Checks that leases are stored where the unit restores from. `given` is $RUNTIME_DIRECTORY, which
// systemd sets for a unit with RuntimeDirectory=. The unit's ExecStopPost= and OnFailure= read no
// other directory. Empty: only the daemon and its companion restore.
Started<void> ready_runtime_dir(const Config& config, std::string_view given);
// The same with what this process was given.
Started<void> ready_runtime_dir(const Config& config);

// Checks whether a daemon with `config` would start here after a running one has ended. Changes
// nothing.
Started<void> check_readiness(const Config& config);

}  // namespace cgphase
