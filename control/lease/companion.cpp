#include "control/lease/companion.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace cgphase {
namespace {

constexpr const char* kProgram = "cgphase-restore";
constexpr int kStopFd = 3;  // of the companion
constexpr int kStopWaitMs = 2000;
constexpr int kStopPollMs = 10;

Result<std::string> find_program() {
  std::vector<std::string> directories;
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) directories.push_back(self.parent_path().string());
  directories.emplace_back("/usr/lib/cgphase");
  std::string searched;
  for (const std::string& directory : directories) {
    std::string candidate = directory + "/" + kProgram;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    searched += (searched.empty() ? "" : ", ") + directory;
  }
  return failure(ErrorKind::not_found, std::string(kProgram) + " not found in " + searched +
                                           "; install it: no limit is changed without it");
}

// Between fork and exec only async-signal-safe calls are allowed: the caller may have threads.
// Signals are blocked on entry, so that a signal to the daemon's group cannot end the companion.
[[noreturn]] void become_companion(const char* program, char* const* arguments, int stop_fd,
                                   int failure_fd) {
  ::setsid();
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) ::signal(signal, SIG_IGN);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (stop_fd == kStopFd)
    ::fcntl(kStopFd, F_SETFD, 0);
  else
    ::dup2(stop_fd, kStopFd);
  ::execv(program, arguments);
  const int error_number = errno;
  // If this write fails, the parent reads end of file and then finds a dead companion.
  if (::write(failure_fd, &error_number, sizeof error_number) < 0) ::_exit(126);
  ::_exit(127);
}

// Returns when the program runs or has failed to start.
Result<pid_t> spawn(const char* program, char* const* arguments, int stop_fd) {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_failure("pipe", errno);
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  const int fork_error = errno;
  if (pid == 0) become_companion(program, arguments, stop_fd, writing.get());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return errno_failure("fork", fork_error);
  writing.reset();
  int error_number = 0;
  ssize_t count;
  do {
    count = ::read(reading.get(), &error_number, sizeof error_number);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return pid;
  ::waitpid(pid, nullptr, 0);
  return errno_failure(program, error_number);
}

}  // namespace

Companion::Companion(pid_t pid, Fd pidfd, Fd stop_socket)
    : pid_(pid), pidfd_(std::move(pidfd)), stop_socket_(std::move(stop_socket)) {}

Companion::Companion(Companion&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      stop_socket_(std::move(other.stop_socket_)) {}

Companion& Companion::operator=(Companion&& other) noexcept {
  pid_ = std::exchange(other.pid_, -1);
  pidfd_ = std::move(other.pidfd_);
  stop_socket_ = std::move(other.stop_socket_);
  return *this;
}

Result<Companion> Companion::start(const Options& options) {
  const auto program = find_program();
  if (!program) return std::unexpected(program.error());
  std::array<int, 2> ends;  // a socket pair, because a pipe would raise SIGPIPE
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return errno_failure("socketpair", errno);
  Fd reading(ends[0]), writing(ends[1]);
  std::vector<std::string> words = {kProgram,        "--watch",
                                    "--pid",         std::to_string(::getpid()),
                                    "--stop-fd",     std::to_string(kStopFd),
                                    "--silence",     std::to_string(options.silence.count()) + "ms",
                                    "--runtime-dir", options.runtime_dir,
                                    "--cgroup-root", options.cgroup_root};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const auto pid = spawn(program->c_str(), arguments.data(), reading.get());
  if (!pid) return std::unexpected(pid.error());
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
  return Companion(*pid, std::move(pidfd), std::move(writing));
}

bool Companion::alive() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) != 0) pid_ = -1;
  return pid_ > 0;
}

void Companion::stop() {
  if (!alive()) return;
  const char stop = 's';
  // If the companion died just now, this fails with EPIPE and the wait below ends at once.
  (void)::send(stop_socket_.get(), &stop, 1, MSG_NOSIGNAL);
  for (int waited = 0; waited < kStopWaitMs && alive(); waited += kStopPollMs) {
    pollfd ended{pidfd_.get(), POLLIN, 0};
    ::poll(&ended, 1, kStopPollMs);
  }
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace cgphase
