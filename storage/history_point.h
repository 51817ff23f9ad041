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
  HostCapacity host = {};  // zeros if it was not stored
  // The highest CPU use between two of the samples that a thinned point covers
  // (storage/thinning.h).
  std::optional<double> peak_cpu_cores = {};
  // The wall-clock time at which the monotonic clock was 0: milliseconds since 1970. It changes
  // when the wall clock is set and when the host boots.
  Counter clock_start_ms = {};
};

// The time between two points of a container, by the monotonic clock if both points have it. The
// wall clock may be set in between, which would distort CPU use. At most 0 means unknown.
inline double seconds_between(const HistoryPoint& from, const HistoryPoint& to) {
  const double wall = std::chrono::duration<double>(to.time - from.time).count();
  if (!from.clock_start_ms || !to.clock_start_ms) return wall;
  const double set = (static_cast<double>(*to.clock_start_ms) -
                      static_cast<double>(*from.clock_start_ms)) / 1e3;
  return wall - set > 0 ? wall - set : wall;
}

}  // namespace cgphase
