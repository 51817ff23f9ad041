// The companion's side of control/lease/companion.h. It is linked into cgphase-restore without
// threads or outside libraries.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <string>
#include <utility>

#include "base/memory_lock.h"
#include "control/lease/companion.h"
#include "control/lease/deadline_watch.h"
#include "control/lease/heartbeat_watch.h"
#include "control/lease/restore.h"

namespace cgphase {
namespace {

constexpr int kFreeAttempts = 100;
constexpr timespec kFreePause = {0, 20'000'000};

enum class Wake { timeout, stop_requested, daemon_dead };

// Standard error is shared with the daemon. The daemon may hang on it because it is a pipe or
// terminal that nobody reads. A line that cannot be written at once is dropped.
void print_line(const std::string& text) {
  const std::string line = "cgphase-restore: " + text + "\n";
  const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
  if (::send(STDERR_FILENO, line.data(), line.size(), flags) >= 0 || errno != ENOTSOCK) return;
  // O_NONBLOCK belongs to the open file description, which the daemon shares. This opens a separate
  // one.
  const Fd own(::open("/proc/self/fd/2", O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (::write(own.get(), line.data(), line.size()) < 0) return;
}

int print_failures(const RestoreReport& report) {
  for (const std::string& line : report.failures) print_line(line);
  return report.failures.empty() ? 0 : 1;
}

// When processes run out of memory, the OOM killer ends the largest, or the whole cgroup
// (memory.oom.group), but none with this score. Without CAP_SYS_RESOURCE the score stays unchanged.
void outlive_out_of_memory() {
  const Fd fd(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (::write(fd.get(), "-1000", 5) < 0) return;
}

class Watch {
 public:
  explicit Watch(const WatchOptions& options)
      : options_(options),
        pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, options.pid, 0))),
        heartbeat_(options.silence, kWatchInterval) {}

  int run() {
    if (!pidfd_.valid() && errno == ESRCH) return after_death();
    for (;;) {
      const Wake wake = wait();
      if (wake == Wake::stop_requested) return 0;
      if (wake == Wake::daemon_dead) return after_death();
      check();
    }
  }

 private:
  Wake wait() {
    std::array<pollfd, 2> watched = {pollfd{pidfd_.get(), POLLIN, 0},
                                     pollfd{options_.stop_fd, POLLIN, 0}};
    // Without a pidfd only polling can notice the daemon's death. A deadline may be near.
    const auto rest = pidfd_.valid() && !deadlines_.any()
                          ? std::chrono::ceil<std::chrono::milliseconds>(heartbeat_.rest())
                          : kWatchInterval;
    const int count = ::poll(watched.data(), watched.size(), static_cast<int>(rest.count()));
    if (count > 0 && watched[1].revents != 0) return read_stop();
    if (count > 0 && watched[0].revents != 0) return Wake::daemon_dead;
    // Without a pidfd and a pipe, a missing pid is the only sign of death.
    if (!pidfd_.valid() && ::kill(options_.pid, 0) != 0 && errno == ESRCH) return Wake::daemon_dead;
    return Wake::timeout;
  }

  Wake read_stop() {
    char byte = 0;
    const ssize_t count = ::read(options_.stop_fd, &byte, 1);
    if (count > 0) return Wake::stop_requested;
    return count == 0 ? Wake::daemon_dead : Wake::timeout;
  }

  // While the daemon is silent, every check restores again: a write in progress when it stopped may
  // complete late.
  void check() {
    if (!leases_ && !open_leases()) return;
    const bool silent = heartbeat_.silent(clock_.monotonic_now(), leases_->last_beat());
    if (!silent) {
      silent_ = false;
      return check_deadlines();
    }
    const RestoreReport report = restore_leases(*leases_, options_.cgroup_root);
    if (!silent_) {
      print_line("process " + std::to_string(options_.pid) + " is silent; its limits are restored");
      print_failures(report);
    }
    silent_ = true;
  }

  // A failure is repeated at each check, and reported once.
  void check_deadlines() {
    const RestoreReport report =
        deadlines_.check(*leases_, options_.cgroup_root, clock_.monotonic_now());
    if (report.restored > 0)
      print_line("process " + std::to_string(options_.pid) + " did not end a freeze in time; " +
                 std::to_string(report.restored) + " thawed");
    if (!std::exchange(late_, !report.failures.empty())) print_failures(report);
  }

  // The kernel releases the owner's lock when the daemon dies. If the lock is still taken, a new
  // daemon owns the leases and has already restored them.
  int after_death() {
    if (!leases_ && !open_leases()) return 0;
    for (int attempt = 0; attempt < kFreeAttempts; ++attempt) {
      if (leases_->try_own()) return print_failures(restore_leases(*leases_, options_.cgroup_root));
      if (leases_->owner_pid() != options_.pid) return 0;
      ::nanosleep(&kFreePause, nullptr);
    }
    // Another process has the lock, but it is not the daemon. Restoring is compare-and-set and
    // needs no lock.
    return print_failures(restore_leases(*leases_, options_.cgroup_root));
  }

  bool open_leases() {
    auto table = LeaseTable::open_existing({.runtime_dir = options_.runtime_dir});
    if (table) leases_ = std::move(*table);
    if (!table && table.error().kind != ErrorKind::not_found && !reported_) {
      print_line(table.error().text);
      reported_ = true;
    }
    return leases_ != nullptr;
  }

  const WatchOptions& options_;
  Fd pidfd_;
  HeartbeatWatch heartbeat_;
  DeadlineWatch deadlines_;
  SystemClock clock_;
  std::unique_ptr<LeaseTable> leases_;
  bool silent_ = false, late_ = false;
  bool reported_ = false;
};

}  // namespace

int watch_daemon(const WatchOptions& options) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
  outlive_out_of_memory();
  (void)lock_memory();  // if this fails, the daemon reports it
  return Watch(options).run();
}

}  // namespace cgphase
