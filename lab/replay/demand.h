// Demand of a recorded execution over time, the input of replay.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cgroupfs/limits.h"
#include "collectors/sample.h"
#include "traces/trace.h"

namespace cgphase {

// One row of an execution. An absent value was not recorded.
struct DemandPoint {
  double seconds = 0;           // time of the row since the first row of the file
  double interval_seconds = 0;  // since the row before; 0 for the first row and after a gap
  std::optional<double> cpu_cores;          // mean over the interval
  std::optional<double> memory_bytes;       // need (memory_need) at the end of the interval
  std::optional<double> working_set_bytes;  // at the end of the interval
  bool throttled = false;  // throttled in the interval, while recorded
  // Demand reached the limit while recorded: the real demand was at least this.
  bool cpu_censored = false, memory_censored = false;
};

// At or above this share of the recorded limit a sample counts as censored, if throttling and
// memory.events are not recorded.
inline constexpr double kCensoredRatio = 0.98;

// The host as recorded in the trace. If it is not recorded and there is no limit, the largest use
// replaces it.
HostCapacity told_host(const ExecutionHeader& execution);

// Returns one point per row. `cadence_seconds` is the usual interval between rows.
std::vector<DemandPoint> demand_of(const Execution& execution, double cadence_seconds);
// Returns the median interval between rows, in seconds; 1 if there are fewer than two rows.
double cadence_of(const Execution& execution);

}  // namespace cgphase
