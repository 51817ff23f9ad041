// Work in slots at a fixed rate: the pace of a network, an accelerator or a queue. It keeps the
// need of a stage below what one core could do.
#pragma once

#include <chrono>
#include <cstdint>

namespace cgphase::workloads {

class Pace {
 public:
  enum class Late {
    catch_up,  // missed slots follow at once, like a queue's backlog
    slip,      // every later slot moves, as in a training loop
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

// Half a period of the CPU quota, so that every period has the same work, and a little more.
// User-mode Linux accounts CPU time in ticks of 10 ms. It would measure work in step with the ticks
// always too short or always too long.
inline constexpr std::chrono::microseconds kSlot{50'300};

// Units of work spread evenly over `length`, some of them in each slot.
class Spread {
 public:
  Spread(std::chrono::nanoseconds length, std::uint64_t units, Pace::Late late);

  // Waits for the next slot. The units [begin, end), perhaps none, are to be done in it. False if
  // all are done.
  bool next(std::uint64_t& begin, std::uint64_t& end);

 private:
  Pace pace_;
  std::uint64_t units_, slots_, slot_ = 0;
};

// How many slots a stage of that length has; at least one.
std::uint64_t slot_count(std::chrono::nanoseconds length);

// CLOCK_MONOTONIC, as in label files and results.
double monotonic_seconds();
// CPU time of this process with all its threads (getrusage).
double cpu_seconds();

}  // namespace cgphase::workloads
