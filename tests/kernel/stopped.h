// Children that stop by themselves, for tests of what the kernel has counted of them by then.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/file.h"

namespace cgphase {

// Waits until a child has stopped and no processor runs it any more: until then its CPU time grows,
// though waitpid() told of it. No file of a cgroup is read for that, for those bring counts up to
// date; of a process that runs the kernel does not tell the system call. False where it ended.
inline bool await_stop(pid_t pid) {
  constexpr int kMostTries = 10'000;
  int status = 0;
  if (::waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status)) return false;
  const std::string file = "/proc/" + std::to_string(pid) + "/syscall";
  for (int tries = 0; tries < kMostTries; ++tries) {
    const auto call = read_file(file, 4096);
    if (!call || !call->starts_with("running")) return true;
    ::usleep(1000);
  }
  return false;
}

}  // namespace cgphase
