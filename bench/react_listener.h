// The benchmark's own view beside the fast path. A thread at real-time priority listens to the same
// sources and reads the same file. It also measures a plain wake-up at this moment on this machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "bench/react_causes.h"

namespace cgphase {

// Moments on the monotonic clock in nanoseconds; 0 before they have come.
struct Seen {
  std::int64_t told = 0;             // the kernel's first signal
  std::int64_t told_enough = 0;      // a signal, and the fast path's rule can read enough
  std::int64_t evident = 0;          // enough can be read; tried every millisecond
  std::int64_t first_throttled = 0;  // as counted by cpu.stat
};

class Listener {
 public:
  // If the fast path polls, the listener only reads the file.
  Listener(const std::string& group, const Cause& cause, Teller teller);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  // Stops listening.
  Seen stop();

 private:
  void listen();
  void look(bool told);

  const Cause& cause_;
  Fd file_, told_, end_;
  short wanted_ = 0;
  Seen seen_;  // owned by the thread until it has ended
  std::thread thread_;
};

// Repeatedly wakes a thread that waits in epoll, as the fast path's does. Returns the time of each
// wake-up in milliseconds.
std::vector<double> measure_wakeups(int count, int pause);

}  // namespace cgphase
