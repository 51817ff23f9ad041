// What no kernel can have counted: more CPU time than the host has processors, more memory than it
// has, counters that jump. One wrong reading must not become a peak, a phase or a limit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "collectors/sample.h"

namespace cgphase {

// CPU time is counted at the ticks of the kernel, and a reading takes time: so much more than the
// processors can run in an interval is believed.
inline constexpr double kCpuTimeTolerance = 1.25;
inline constexpr std::chrono::milliseconds kCpuTimeSlack{50};
// No other counter grows faster: a terabyte, or as many events or microseconds, in a second.
inline constexpr double kMostCountsPerSecond = 1e12;
// The most that pid_max can be (PID_MAX_LIMIT in include/linux/threads.h).
inline constexpr std::uint64_t kMostTasks = std::uint64_t{1} << 22;
// So many samples in a row are left out. After that, what is impossible is absent in them: a hole
// as long as a gap would begin all that is known of the container anew.
inline constexpr int kMostLeftOut = 2;

// The threads of a cgroup bound its CPU time, too, but pids.current does not count those that came
// and went between two readings.
//
// Of one container, owned and used by the sampler's thread. Nothing is allocated.
class SampleFilter {
 public:
  // `host` is the whole machine, with its swap; what is 0 of it bounds nothing. True, and the
  // sample is the one that later ones are compared with, where all of it can be.
  bool accept(MonotonicTime time, const HostCapacity& host, const Sample& sample);
  // One that was not accepted. False: it is to be left out, the next one tells what it would have
  // told. True: what is impossible of it is absent now. A counter that stays at its new level is
  // believed from the second reading there, but for what it jumped by.
  bool mend(MonotonicTime time, const HostCapacity& host, Sample& sample);

 private:
  static constexpr std::size_t kCounters = 24;
  struct Reading {
    MonotonicTime time;
    std::array<Counter, kCounters> counters;
  };
  static Reading reading_of(MonotonicTime time, const Sample& sample);
  // The most that a counter can grow by from one reading to the other.
  struct Growth {
    std::uint64_t cpu_usec, counts;
  };
  static Growth most_growth(MonotonicTime now, MonotonicTime before, const HostCapacity& host);
  static bool follows(const Reading& now, const Reading& before, const Growth& most,
                      std::size_t counter);
  static bool follows(const Reading& now, const Reading& before, const HostCapacity& host);
  template <bool reset>
  static bool fits(const HostCapacity& host, auto& sample);

  std::optional<Reading> sound_, suspect_;  // the last one, and the one left out after it
  int left_out_ = 0;                        // in a row
};

}  // namespace cgphase
