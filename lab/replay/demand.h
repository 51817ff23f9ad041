// What a recorded execution asked for, as numbers over time: what replay plays.
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
  double seconds = 0;           // of the row, since the first row of the file
  double interval_seconds = 0;  // since the row before; 0 for the first and after a gap
  std::optional<double> cpu_cores;          // mean over the interval
  std::optional<double> memory_bytes;       // need (memory_need) at the end of the interval
  std::optional<double> working_set_bytes;  // at the end of the interval
  bool throttled = false;  // in the interval, by the limit of the recording
  // The recording itself ran into its limit: the demand was at least what was recorded.
  bool cpu_censored = false, memory_censored = false;
};

// At or above this share of the recorded limit a sample counts as censored by it (where throttling
// and memory.events do not tell).
inline constexpr double kCensoredRatio = 0.98;

// The host as far as the trace tells it. Where it does not, the largest use stands for it only
// where there is no limit: it bounds none.
HostCapacity told_host(const ExecutionHeader& execution);

// One point per row. `cadence_seconds` is the usual distance of two rows.
std::vector<DemandPoint> demand_of(const Execution& execution, double cadence_seconds);
// The median distance of two rows; 1 where there are fewer than two.
double cadence_of(const Execution& execution);

}  // namespace cgphase
