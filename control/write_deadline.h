// Ends a blocking system call of one thread at a deadline. A write to memory.max, memory.high or
// memory.reclaim reclaims in the writing thread for as long as that takes. A signal ends it.
// O_NONBLOCK works only on new kernels; older ones ignore it.
#pragma once

#include <atomic>
#include <chrono>
#include <ctime>

#include "base/result.h"

namespace cgphase {

// Belongs to the thread that created it, which must also destroy it.
class WriteDeadline {
 public:
  // Installs a real-time signal handler that does nothing, without SA_RESTART.
  WriteDeadline();
  ~WriteDeadline();
  WriteDeadline(const WriteDeadline&) = delete;
  WriteDeadline& operator=(const WriteDeadline&) = delete;

  // After `after` the owner is interrupted repeatedly until disarm(). A single signal just before
  // the system call would be lost.
  void arm(std::chrono::milliseconds after);
  void disarm();
  // Acts as if the deadline had passed, if the owner is armed. Any thread may call it.
  void expire_now();

 private:
  void set(std::chrono::nanoseconds after, std::chrono::nanoseconds interval);
  timer_t timer_{};
  std::atomic<bool> armed_{false};
};

}  // namespace cgphase
