// Work in slots at a fixed rate: the pace of a network, an accelerator or a queue, which keeps the
// need of a stage below what one core could do.
#pragma once

#include <chrono>
#include <cstdint>

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

// Half a period of the CPU quota, so that every period holds the same work, and a little more: a
// kernel that accounts CPU time in ticks (user-mode Linux: 10 ms) would count work that begins in
// step with them always too short or always too long.
inline constexpr std::chrono::microseconds kSlot{50'300};

// Units of work spread evenly over `length`, some of them in each slot.
class Spread {
 public:
  Spread(std::chrono::nanoseconds length, std::uint64_t units, Pace::Late late);

  // Waits for the next slot; the units [begin, end) are to be done in it, perhaps none. False when
  // all are done.
  bool next(std::uint64_t& begin, std::uint64_t& end);

 private:
  Pace pace_;
  std::uint64_t units_, slots_, slot_ = 0;
};

// How many slots a stage of that length has; at least one.
std::uint64_t slot_count(std::chrono::nanoseconds length);

// CLOCK_MONOTONIC as label files and results write it.
double monotonic_seconds();
// CPU time of this process with all its threads (getrusage).
double cpu_seconds();

}  // namespace cgphase::workloads
