// Runs a part of a test in a child process.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <thread>

namespace cgphase {

#ifdef __SANITIZE_THREAD__
inline constexpr int kThreadsOfSanitizer = 1;
#else
inline constexpr int kThreadsOfSanitizer = 0;
#endif

// Runs `body` in a child and returns its exit status, or -1 if a signal ended it. What the child
// does to limits, users and mounts ends with it.
// First waits until the other threads have ended. A detached thread that is about to end holds a
// lock of the address sanitizer, which the child would inherit and never get.
template <class Body>
int in_child(const Body& body) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  while (threads() > 1 + kThreadsOfSanitizer) std::this_thread::yield();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(body());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace cgphase
