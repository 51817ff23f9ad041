// The measures of a replay: what one policy did to one resource of one execution, and the means
// over executions. None of them says enough alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace cgphase {

// Sums over one execution (or several: they add up). "Unit" is cores or bytes.
struct ReplaySums {
  double seconds = 0;             // that had a demand and a limit
  double allocated = 0;           // unit-seconds of the limit in force
  double original = 0;            // unit-seconds of the user's limit
  double oracle = 0;              // unit-seconds of `oracle-max`, same grid and window
  double demanded = 0;            // unit-seconds
  double slack_seconds = 0;       // integral of (limit - demand) / limit, not below 0
  double overrun = 0;             // unit-seconds of demand above the limit in force
  std::int64_t samples = 0;
  // Demand at the sample was above the limit that was in force when its interval began: what the
  // policy itself got wrong, whether the guard mended it in time or not.
  std::int64_t samples_over = 0;
  std::int64_t samples_censored = 0;  // by the limit under which the recording was made
  std::int64_t windows = 0, windows_clean = 0;  // clean: no sample over
  // Windows in which memory demand passed the limit before the guard raised it, by the need
  // (memory_need) and by the working set.
  std::int64_t would_oom = 0, would_oom_working_set = 0;
  std::int64_t writes_up = 0, writes_down = 0;  // of the policy
  std::int64_t guard_raises = 0;
  double backlog_core_seconds = 0;  // CPU demand that had to wait
  double throttled_seconds = 0;     // while any waited
  double longest_delay_seconds = 0; // largest (backlog / limit)

  ReplaySums& operator+=(const ReplaySums& other);
};

// Of sums the ratios of what was allocated or demanded are weighted by resource-hour, slack by
// time and shares by what they count; their mean over executions, by job.
struct ReplayMeasures {
  double alloc_vs_static = 0;
  double slack = 0;            // mean over time of (limit - usage) / limit
  double samples_over = 0;     // share
  double windows_clean = 0;    // share
  double overrun_area = 0;     // of what was demanded
  double above_oracle = 0;     // (allocated - oracle) / original
  // (allocated - oracle) / (original - oracle); absent where the oracle needs the whole limit.
  std::optional<double> gap_to_oracle;
};
ReplayMeasures measures_of(const ReplaySums& sums);
// The mean of each ratio over executions that have any seconds.
ReplayMeasures mean_measures(std::span<const ReplaySums> executions);

}  // namespace cgphase
