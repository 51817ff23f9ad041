#include "lab/replay/measures.h"

#include <algorithm>

namespace cgphase {
namespace {

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::optional<double> gap(double allocated, double oracle, double original) {
  // If the oracle equals the limit within rounding, the gap is not defined.
  constexpr double kNothing = 1e-9;
  if (!(original - oracle > kNothing * original)) return std::nullopt;
  return (allocated - oracle) / (original - oracle);
}

}  // namespace

ReplaySums& ReplaySums::operator+=(const ReplaySums& other) {
  seconds += other.seconds;
  allocated += other.allocated;
  original += other.original;
  oracle += other.oracle;
  demanded += other.demanded;
  slack_seconds += other.slack_seconds;
  overrun += other.overrun;
  samples += other.samples;
  samples_over += other.samples_over;
  samples_censored += other.samples_censored;
  windows += other.windows;
  windows_clean += other.windows_clean;
  would_oom += other.would_oom;
  would_oom_working_set += other.would_oom_working_set;
  writes_up += other.writes_up;
  writes_down += other.writes_down;
  guard_raises += other.guard_raises;
  backlog_core_seconds += other.backlog_core_seconds;
  throttled_seconds += other.throttled_seconds;
  longest_delay_seconds = std::max(longest_delay_seconds, other.longest_delay_seconds);
  return *this;
}

ReplayMeasures measures_of(const ReplaySums& sums) {
  const auto count = [](std::int64_t value) { return static_cast<double>(value); };
  return {.alloc_vs_static = ratio(sums.allocated, sums.original),
          .slack = ratio(sums.slack_seconds, sums.seconds),
          .samples_over = ratio(count(sums.samples_over), count(sums.samples)),
          .windows_clean = ratio(count(sums.windows_clean), count(sums.windows)),
          .overrun_area = ratio(sums.overrun, sums.demanded),
          .above_oracle = ratio(sums.allocated - sums.oracle, sums.original),
          .gap_to_oracle = gap(sums.allocated, sums.oracle, sums.original)};
}

ReplayMeasures mean_measures(std::span<const ReplaySums> executions) {
  ReplayMeasures mean;
  double runs = 0, gap_sum = 0, gap_runs = 0;
  for (const ReplaySums& sums : executions) {
    if (!(sums.seconds > 0)) continue;
    const ReplayMeasures one = measures_of(sums);
    runs += 1;
    mean.alloc_vs_static += one.alloc_vs_static;
    mean.slack += one.slack;
    mean.samples_over += one.samples_over;
    mean.windows_clean += one.windows_clean;
    mean.overrun_area += one.overrun_area;
    mean.above_oracle += one.above_oracle;
    if (!one.gap_to_oracle) continue;
    gap_sum += *one.gap_to_oracle;
    gap_runs += 1;
  }
  for (double* value : {&mean.alloc_vs_static, &mean.slack, &mean.samples_over,
                        &mean.windows_clean, &mean.overrun_area, &mean.above_oracle})
    *value = ratio(*value, runs);
  if (gap_runs > 0) mean.gap_to_oracle = gap_sum / gap_runs;
  return mean;
}

}  // namespace cgphase
