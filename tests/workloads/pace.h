// Work in slots at a fixed rate: the pace of a network, an accelerator or a queue, which keeps the
// need of a stage below what one core could do.
#pragma once

#include <chrono>

namespace cgphase::workloads {

class Pace {
 public:
  enum class Late {
    catch_up,  // missed slots follow at once, as a queue's backlog does
    slip,      // every later slot moves, as a training loop does
  };
  // The first slot begins now.
  Pace(std::chrono::nanoseconds slot, Late late);

  // Returns when the next slot begins; at once for the first.
  void wait();

 private:
  std::chrono::nanoseconds slot_;
  Late late_;
  std::chrono::steady_clock::time_point next_;
};

// CLOCK_MONOTONIC as label files and results write it.
double monotonic_seconds();
// CPU time of this process with all its threads (getrusage).
double cpu_seconds();

}  // namespace cgphase::workloads
