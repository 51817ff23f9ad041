// For benchmarks that make cgroups (tests/collectors/host_cgroup.h): the cgroups are removed
// however the benchmark ends.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/collectors/host_cgroup.h"

namespace cgphase {

// Removes the cgroups with HostCgroup's names and everything below them. False if some are left.
inline bool remove_cgroups(const std::filesystem::path& folder, const std::string& prefix) {
  std::error_code gone;
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder, gone))
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
  bool all = true;
  for (const auto& path : found)
    all = remove_cgroups(path, prefix) && ::rmdir(path.c_str()) == 0 && all;
  return all;
}

// Runs `work` in a separate process and returns its exit status. If a signal ends that process
// (SIGPIPE), or this one gets SIGHUP, SIGINT or SIGTERM, all its children are killed and its
// cgroups are removed. The status is then 128 plus the signal's number. Only a SIGKILL of this
// process leaves cgroups behind.
inline int run_and_clean_up(const std::function<int()>& work) {
  sigset_t awaited, before;
  ::sigemptyset(&awaited);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGCHLD}) ::sigaddset(&awaited, signal);
  ::sigprocmask(SIG_BLOCK, &awaited, &before);
  const pid_t worker = ::fork();
  if (worker < 0) {
    std::perror("fork");
    return 1;
  }
  if (worker == 0) {
    ::setpgid(0, 0);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    std::exit(work());
  }
  ::setpgid(worker, worker);  // called by both processes; whichever is first takes effect
  int status = 0, signal = 0;
  while (::waitpid(worker, &status, WNOHANG) == 0) {
    const int came = ::sigwaitinfo(&awaited, nullptr);
    if (came < 0 || came == SIGCHLD) continue;
    signal = came;
    ::kill(-worker, SIGKILL);
    ::waitpid(worker, &status, 0);
    break;
  }
  if (signal == 0 && WIFEXITED(status)) return WEXITSTATUS(status);
  if (signal == 0) signal = WTERMSIG(status);
  ::kill(-worker, SIGKILL);  // and its children
  const std::string prefix = "cgphase-bpf-" + std::to_string(worker) + "-";
  // A killed process leaves its cgroup a moment later.
  for (int tries = 0; tries < 500 && !remove_cgroups(cgroup2_mount(), prefix); ++tries)
    ::poll(nullptr, 0, 10);
  return 128 + signal;
}

}  // namespace cgphase
