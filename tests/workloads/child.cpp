#include "tests/workloads/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

namespace cgphase::workloads {

namespace {

constexpr std::chrono::milliseconds kWaitStep{20};

bool join_cgroup(const std::string& cgroup) {
  if (cgroup.empty()) return true;
  const int procs = open((cgroup + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
  return procs >= 0 && write(procs, "0", 1) == 1;
}

[[noreturn]] void become(const std::vector<std::string>& argv, const Child::Options& options) {
  const int in = open("/dev/null", O_RDONLY);
  const int out = open(options.out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const int err = open(options.err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (in < 0 || out < 0 || err < 0 || !join_cgroup(options.cgroup)) _exit(126);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  closefrom(STDERR_FILENO + 1);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv(words[0], words.data());
  _exit(127);
}

}  // namespace

Result<Child> Child::start(const std::vector<std::string>& argv, const Options& options) {
  Child child;
  child.process_ = fork();
  if (child.process_ < 0) return errno_failure("fork for " + argv[0], errno);
  if (child.process_ == 0) become(argv, options);
  return child;
}

Child::Child(Child&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      exit_status_(other.exit_status_),
      cpu_seconds_(other.cpu_seconds_) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(process_, other.process_);
  std::swap(exit_status_, other.exit_status_);
  std::swap(cpu_seconds_, other.cpu_seconds_);
  return *this;
}

Child::~Child() {
  if (process_ <= 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

bool Child::running() {
  if (process_ <= 0) return false;
  int status = 0;
  rusage usage{};
  if (wait4(process_, &status, WNOHANG, &usage) == 0) return true;
  process_ = -1;
  exit_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  cpu_seconds_ = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  return false;
}

bool Child::wait(std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (running()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(kWaitStep);
  }
  return true;
}

void Child::send(int signal_number) {
  if (process_ > 0) kill(process_, signal_number);
}

}  // namespace cgphase::workloads
