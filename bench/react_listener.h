// What bench_react sees beside the guard: a thread at real-time priority that listens to the same
// sources and reads the same file, and what a bare wake-up takes at this moment on this machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "bench/react_causes.h"

namespace cgphase {

// Moments on the monotonic clock in nanoseconds; 0 while they have not come.
struct Seen {
  std::int64_t told = 0;             // the kernel told for the first time
  std::int64_t told_enough = 0;      // told, and the guard's rule had what it needs to read
  std::int64_t evident = 0;          // that could be read: looked for every millisecond
  std::int64_t first_throttled = 0;  // as cpu.stat counts it
};

class Listener {
 public:
  // Where the guard polls it reads the file alone.
  Listener(const std::string& group, const Cause& cause, Teller teller);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  // Ends the listening.
  Seen stop();

 private:
  void listen();
  void look(bool told);

  const Cause& cause_;
  Fd file_, told_, end_;
  short wanted_ = 0;
  Seen seen_;  // the thread's, until it has ended
  std::thread thread_;
};

// Wakes a thread that rests in epoll, as the guard's does, again and again; the time that each
// wake-up took, in milliseconds.
std::vector<double> measure_wakeups(int count, int pause);

}  // namespace cgphase
