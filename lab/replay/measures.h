// Measures of a replay: sums of one policy, resource and execution, and the table of the measures
// that follow from them. No single measure is sufficient alone. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

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
  // GB-hours or core-hours of unused limit. Each window that would have run out of memory is a
  // failed attempt, as in KS+: it adds all memory allocated until then.
  double wastage = 0;
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

struct Measure {
  // A ratio is weighted by job: the mean over executions. Other measures are sums.
  enum class Kind : std::uint8_t { ratio, count, amount };
  // For one execution or for sums of several. Absent: not defined, like the gap to an oracle that
  // equals the original.
  using Of = std::optional<double> (*)(const ReplaySums& sums);

  std::string_view name;  // in JSON, CSV and --assert
  Kind kind = Kind::ratio;
  Of of = nullptr;
  bool closed_loop_only = false;
};

std::span<const Measure> all_measures();
// Null if there is no measure of that name.
const Measure* find_measure(std::string_view name);

// The main value: for ratios the mean over executions that have the measure, otherwise the sum over
// all. Absent if no execution has it.
std::optional<double> weighted_by_job(const Measure& measure,
                                      std::span<const ReplaySums> executions);
// The same for a measure that exists; 0 if no execution has it.
double mean_of(std::string_view measure, std::span<const ReplaySums> executions);

// The ratio of the sums.
std::optional<double> weighted_by_resource_hour(const Measure& measure,
                                                std::span<const ReplaySums> executions);

ReplaySums total_of(std::span<const ReplaySums> executions);
// True if any execution had demand and limit of that resource. Other resources are not reported.
bool measured(std::span<const ReplaySums> executions);

}  // namespace cgphase
