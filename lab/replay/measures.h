// Measures of a replay: sums of one policy, resource and execution, and means over executions. No
// single measure is sufficient alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace cgphase {

// Sums over one execution, or over several: they add up. "Unit" is cores or bytes.
struct ReplaySums {
  double seconds = 0;             // seconds with a demand and a limit
  double allocated = 0;           // unit-seconds of the limit in force
  double original = 0;            // unit-seconds of the user's limit
  double oracle = 0;              // unit-seconds of `oracle-max`, with the same grid and window
  double demanded = 0;            // unit-seconds
  double slack_seconds = 0;       // integral of (limit - demand) / limit, not below 0
  double overrun = 0;             // unit-seconds of demand above the limit in force
  std::int64_t samples = 0;
  // Samples with demand above the limit that was in force at the start of the interval. This is the
  // policy's error, even if the guard corrected it in time.
  std::int64_t samples_over = 0;
  std::int64_t samples_censored = 0;  // by the limit while recorded
  std::int64_t windows = 0, windows_clean = 0;  // clean: no sample over
  // Windows in which memory demand exceeded the limit before the guard raised it, by need
  // (memory_need) and by working set.
  std::int64_t would_oom = 0, would_oom_working_set = 0;
  std::int64_t writes_up = 0, writes_down = 0;  // writes by the policy
  std::int64_t guard_raises = 0;
  double backlog_core_seconds = 0;  // CPU demand that had to wait
  double throttled_seconds = 0;     // time with a backlog
  double longest_delay_seconds = 0; // largest (backlog / limit)

  ReplaySums& operator+=(const ReplaySums& other);
};

// Ratios. From sums, ratios of allocation and demand are weighted by resource-hour, slack by time,
// and shares by their counts. Means over executions are weighted by job.
struct ReplayMeasures {
  double alloc_vs_static = 0;
  double slack = 0;            // mean over time of (limit - usage) / limit
  double samples_over = 0;     // share
  double windows_clean = 0;    // share
  double overrun_area = 0;     // share of the demand
  double above_oracle = 0;     // (allocated - oracle) / original
  // (allocated - oracle) / (original - oracle); absent if the oracle needs the whole limit.
  std::optional<double> gap_to_oracle;
};
ReplayMeasures measures_of(const ReplaySums& sums);
// Mean of each ratio over executions with seconds above 0.
ReplayMeasures mean_measures(std::span<const ReplaySums> executions);

}  // namespace cgphase
