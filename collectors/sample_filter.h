// Detects impossible samples: more CPU time than the host has processors, more memory than it has,
// counters that jump. One wrong reading must not become a peak, a phase or a limit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "collectors/sample.h"

namespace cgphase {

// CPU time is counted at kernel ticks, and a reading takes time. So this much more than the
// processors can run in an interval is accepted.
inline constexpr double kCpuTimeTolerance = 1.25;
inline constexpr std::chrono::milliseconds kCpuTimeSlack{50};
// No other counter grows faster: a terabyte, or as many events or microseconds, per second.
inline constexpr double kMostCountsPerSecond = 1e12;
// The largest value of pid_max (PID_MAX_LIMIT in include/linux/threads.h).
inline constexpr std::uint64_t kMostTasks = std::uint64_t{1} << 22;
// At most this many consecutive samples are dropped. After that, only impossible values are absent.
// A longer hole would count as a gap and reset all that is known of the container.
inline constexpr int kMostLeftOut = 2;

// The threads of a cgroup limit its CPU time too, but pids.current misses threads that came and
// went between two readings.
//
// The filter of one container, owned and used by the sampler's thread. It does not allocate.
class SampleFilter {
 public:
  // `host` is the whole machine with its swap; a field of 0 sets no bound. Returns true if all
  // values are possible. Later samples are then compared with this one.
  bool accept(MonotonicTime time, const HostCapacity& host, const Sample& sample);
  // Handles a sample that was not accepted. False: drop it; the next sample includes its data.
  // True: its impossible values are absent now. If a counter stays at its new level, it is accepted
  // from the second reading on, without the jump.
  bool mend(MonotonicTime time, const HostCapacity& host, Sample& sample);

 private:
  static constexpr std::size_t kCounters = 24;
  struct Reading {
    MonotonicTime time;
    std::array<Counter, kCounters> counters;
  };
  static Reading reading_of(MonotonicTime time, const Sample& sample);
  // The largest possible growth of a counter between two readings.
  struct Growth {
    std::uint64_t cpu_usec, counts;
  };
  static Growth most_growth(MonotonicTime now, MonotonicTime before, const HostCapacity& host);
  static bool follows(const Reading& now, const Reading& before, const Growth& most,
                      std::size_t counter);
  static bool follows(const Reading& now, const Reading& before, const HostCapacity& host);
  template <bool reset>
  static bool fits(const HostCapacity& host, auto& sample);

  // The last accepted reading, and the one dropped after it.
  std::optional<Reading> sound_, suspect_;
  int left_out_ = 0;  // consecutive samples
};

}  // namespace cgphase
