// A program run as a child process.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace cgphase::workloads {

// Owns the process; kills it on destruction. One thread.
class Child {
 public:
  struct Options {
    std::string out = "/dev/null", err = "/dev/null";  // truncated; input is /dev/null
    std::string cgroup;                                // joined before the program starts
  };
  Child() = default;
  // argv[0] is the program's path. If the program cannot be started, the status is 127; if its
  // files or its cgroup are not available, it is 126.
  static Result<Child> start(const std::vector<std::string>& argv, const Options& options);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  // False before start() and after its end; then exit_status() is set.
  bool running();
  // Waits for its end, at most for `limit`.
  bool wait(std::chrono::milliseconds limit);
  void send(int signal_number);
  // 128 plus the signal if it was killed.
  std::optional<int> exit_status() const { return exit_status_; }
  // CPU time of it and its waited-for children, after its end.
  double cpu_seconds() const { return cpu_seconds_; }

 private:
  pid_t process_ = -1;
  std::optional<int> exit_status_;
  double cpu_seconds_ = 0;
};

}  // namespace cgphase::workloads
