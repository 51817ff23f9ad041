// Children that stop themselves, for tests of what the kernel has counted of them by then.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/file.h"

namespace cgphase {

// Waits until a child has stopped and no processor runs it any more. Until then its CPU time grows,
// although waitpid() has reported the stop. No cgroup file is read for that, because those reads
// update the counts. The check uses that the kernel shows no system call of a running process.
// False if the child ended.
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
