// The companion is cgphase-restore --watch: a separate process that restores every leased limit
// when the daemon dies or falls silent. It needs no systemd.
//
// The companion ends when the daemon asks it to (stop) or dies. Signals to the daemon's process
// group or terminal do not reach it. The OOM killer does not select it, neither alone nor with its
// whole cgroup. When the daemon falls silent, the companion revokes the leases before it restores
// (LeaseTable::revoke). A daemon that wakes up again therefore lowers nothing before it has reread
// the limits.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

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
  };

  // Starts the companion. Call it after LeaseTable::open and before the first change. Searches for
  // cgphase-restore in the directory of the running program and in /usr/lib/cgphase. Errors:
  // not_found (the text lists the directories), io.
  static Result<Companion> start(const Options& options);

  Companion(Companion&&) noexcept;
  Companion& operator=(Companion&&) noexcept;
  // Does not stop the companion: it waits for the end of this process.
  ~Companion() = default;

  pid_t pid() const { return pid_; }
  bool alive();

  // For a clean shutdown, after everything is restored. The companion ends and writes nothing.
  // Waits up to two seconds, then kills it.
  void stop();

 private:
  Companion(pid_t pid, Fd pidfd, Fd stop_socket);
  pid_t pid_ = -1;
  Fd pidfd_;
  Fd stop_socket_;
};

// The companion's side, run by cgphase-restore --watch.
struct WatchOptions {
  std::string runtime_dir;
  std::string cgroup_root;
  pid_t pid = -1;    // the daemon
  int stop_fd = -1;  // a byte requests a clean stop, end of file means a dead daemon; -1: not used
  std::chrono::milliseconds silence = kDefaultSilence;
};

// Runs until the companion ends and returns its exit status. 0: the daemon asked it to stop, or
// died and everything was restored. 1: something was not restored (one line each on standard
// error).
int watch_daemon(const WatchOptions& options);

}  // namespace cgphase
