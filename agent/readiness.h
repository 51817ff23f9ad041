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

// A start fails by permission, by the disk, or by something that stays wrong until somebody mends
// it: then a restart would not help (RestartPreventExitStatus=6).
std::unexpected<Refusal> refuse(const Error& error);

// The cgroups that `config` names, or what is mounted; refused where its mode needs more than they
// have.
Started<CgroupRoot> ready_root(const Config& config);

// The model that a daemon with `config` runs.
Started<ChosenModel> ready_model(const Config& config);

// Whether leases will lie where the unit restores from: `given` is $RUNTIME_DIRECTORY, which
// systemd sets for a unit with RuntimeDirectory=; its ExecStopPost= and OnFailure= look nowhere
// else. Empty: nobody restores but the daemon and its companion.
Started<void> ready_runtime_dir(const Config& config, std::string_view given);
// The same with what this process was given.
Started<void> ready_runtime_dir(const Config& config);

// Whether a daemon with `config` would start here, once the one that may run has ended, as far as
// nothing has to be changed to know it.
Started<void> check_readiness(const Config& config);

}  // namespace cgphase
