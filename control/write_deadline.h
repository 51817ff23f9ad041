// Ends a blocking system call of one thread. Writes to memory.max, memory.high and memory.reclaim
// reclaim in the writer, as long as it takes; a signal ends them. O_NONBLOCK does so on new kernels
// only and is ignored by older ones.
#pragma once

#include <atomic>
#include <chrono>
#include <ctime>

#include "base/result.h"

namespace cgphase {

// Belongs to the thread that created it and must be destroyed by it.
class WriteDeadline {
 public:
  // Takes the first free use of a real-time signal whose handler does nothing, without SA_RESTART.
  WriteDeadline();
  ~WriteDeadline();
  WriteDeadline(const WriteDeadline&) = delete;
  WriteDeadline& operator=(const WriteDeadline&) = delete;

  // From `after` on the owner is interrupted again and again until disarm(): a signal that comes
  // just before the system call would be lost.
  void arm(std::chrono::milliseconds after);
  void disarm();
  // Any thread: as if the deadline had passed, if the owner is armed.
  void expire_now();

 private:
  void set(std::chrono::nanoseconds after, std::chrono::nanoseconds interval);
  timer_t timer_{};
  std::atomic<bool> armed_{false};
};

}  // namespace cgphase
