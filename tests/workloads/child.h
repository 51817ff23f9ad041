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
  // argv[0] is the program's path. A program that cannot be started ends with status 127, one that
  // cannot have its files or its cgroup with 126.
  static Result<Child> start(const std::vector<std::string>& argv, const Options& options);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  // False before start() and once it ended; then exit_status() is there.
  bool running();
  // Waits until it ended, at most so long.
  bool wait(std::chrono::milliseconds limit);
  void send(int signal_number);
  // 128 + the signal for a killed one.
  std::optional<int> exit_status() const { return exit_status_; }
  // Of it and its waited-for children, once it ended.
  double cpu_seconds() const { return cpu_seconds_; }

 private:
  pid_t process_ = -1;
  std::optional<int> exit_status_;
  double cpu_seconds_ = 0;
};

}  // namespace cgphase::workloads
