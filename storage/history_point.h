// One container in one tick, as history keeps it.
#pragma once

#include <optional>

#include "base/clock.h"
#include "collectors/limits.h"
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
};

}  // namespace cgphase
