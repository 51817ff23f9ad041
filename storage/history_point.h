// One container in one tick, as history keeps it.
#pragma once

#include <chrono>
#include <optional>

#include "base/clock.h"
#include "cgroupfs/limits.h"
#include "collectors/sample.h"
#include "model/phase.h"

namespace cgphase {

struct HistoryPoint {
  WallTime time;
  Sample sample;
  Phase phase;
  Limits original = {};    // before cgphase changed any: cpu_max and memory_max, no others
  HostCapacity host = {};  // zeros where it was not stored
  // Of a point that stands for several (storage/thinning.h): the highest usage between two readings
  // among them.
  std::optional<double> peak_cpu_cores = {};
  // When the monotonic clock of `time` began, by the wall clock: milliseconds since 1970. It is
  // another one after the wall clock was set, and after the host was started anew.
  Counter clock_start_ms = {};
};

// Between two points of a container. By the monotonic clock, where both tell it: a wall clock that
// is set in between makes too much or too little of the CPU time used. Not above 0 where nothing is
// known.
inline double seconds_between(const HistoryPoint& from, const HistoryPoint& to) {
  const double wall = std::chrono::duration<double>(to.time - from.time).count();
  if (!from.clock_start_ms || !to.clock_start_ms) return wall;
  const double set = (static_cast<double>(*to.clock_start_ms) -
                      static_cast<double>(*from.clock_start_ms)) / 1e3;
  return wall - set > 0 ? wall - set : wall;
}

}  // namespace cgphase
