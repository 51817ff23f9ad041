// The dead-man companion: cgphase-restore --watch, a process of its own that restores every leased
// limit when the daemon dies or falls silent. It needs no systemd.
//
// It ends when the daemon tells it to (stop) or is dead; signals to the daemon's process group or
// terminal do not reach it, and the kernel does not end it for want of memory, alone or with the
// whole cgroup. When it restores because of silence it revokes the leases first
// (LeaseTable::revoke), so that a daemon that wakes up again lowers nothing before it has looked.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "control/lease/lease_table.h"

namespace cgphase {

inline constexpr std::chrono::milliseconds kDefaultSilence{3000};
inline constexpr std::chrono::milliseconds kWatchInterval{250};

// The daemon's handle on its companion. Used by one thread.
class Companion {
 public:
  struct Options {
    std::string runtime_dir;
    std::string cgroup_root;
    std::chrono::milliseconds silence = kDefaultSilence;
    // Where cgphase-restore is looked for, after the directory of the running program and
    // /usr/lib/cgphase.
    std::vector<std::string> program_directories = {};
  };

  // Start it after LeaseTable::open and before the first change. Errors: not_found (no
  // cgphase-restore; the text says where it was looked for), io.
  static Result<Companion> start(const Options& options);

  Companion(Companion&&) noexcept;
  Companion& operator=(Companion&&) noexcept;
  // A companion that was not stopped stays: the end of this process is what it waits for.
  ~Companion() = default;

  pid_t pid() const { return pid_; }
  bool alive();

  // Clean shutdown: all is restored, the companion ends without touching anything. Waits up to two
  // seconds, then kills it.
  void stop();

 private:
  Companion(pid_t pid, Fd pidfd, Fd stop_socket);
  pid_t pid_ = -1;
  Fd pidfd_;
  Fd stop_socket_;
};

// The companion's own side, run by cgphase-restore --watch.
struct WatchOptions {
  std::string runtime_dir;
  std::string cgroup_root;
  pid_t pid = -1;    // the daemon
  int stop_fd = -1;  // a byte on it: clean shutdown; end of file: the daemon is dead. -1: none
  std::chrono::milliseconds silence = kDefaultSilence;
};

// Returns the exit status: 0 when told to stop or when all was restored after the daemon's death,
// 1 when something could not be restored (one line each on standard error).
int watch_daemon(const WatchOptions& options);

}  // namespace cgphase
