#include "lab/replay/measures.h"

#include <algorithm>

#include "base/check.h"

namespace cgphase {
namespace {

using Kind = Measure::Kind;
using Value = std::optional<double>;

template <class Number>
Value ratio(bool defined, Number part, Number whole) {
  if (!defined) return std::nullopt;
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

Value gap_to_oracle(const ReplaySums& sums) {
  // If the oracle equals the limit within rounding, the gap is not defined.
  constexpr double kNothing = 1e-9;
  const double most = sums.original - sums.oracle;
  if (!(sums.seconds > 0) || !(most > kNothing * sums.original)) return std::nullopt;
  return (sums.allocated - sums.oracle) / most;
}

template <auto field>
Value sum(const ReplaySums& sums) {
  return static_cast<double>(sums.*field);
}

constexpr Measure kMeasures[] = {
    {"alloc_vs_static", Kind::ratio,
     [](const ReplaySums& s) { return ratio(s.seconds > 0, s.allocated, s.original); }},
    {"slack", Kind::ratio,
     [](const ReplaySums& s) { return ratio(s.seconds > 0, s.slack_seconds, s.seconds); }},
    {"samples_over", Kind::ratio,
     [](const ReplaySums& s) { return ratio(s.seconds > 0, s.samples_over, s.samples); }},
    {"windows_clean", Kind::ratio,
     [](const ReplaySums& s) { return ratio(s.windows > 0, s.windows_clean, s.windows); }},
    {"overrun_area", Kind::ratio,
     [](const ReplaySums& s) { return ratio(s.demanded > 0, s.overrun, s.demanded); }},
    {"gap_to_oracle", Kind::ratio, gap_to_oracle},
    {"above_oracle", Kind::ratio,
     [](const ReplaySums& s) {
       return ratio(s.seconds > 0, s.allocated - s.oracle, s.original);
     }},
    {"censored", Kind::ratio,
     [](const ReplaySums& s) { return ratio(s.samples > 0, s.samples_censored, s.samples); }},
    {"wastage", Kind::amount, sum<&ReplaySums::wastage>},
    {"would_oom", Kind::count, sum<&ReplaySums::would_oom>},
    {"would_oom_working_set", Kind::count, sum<&ReplaySums::would_oom_working_set>},
    {"writes_up", Kind::count, sum<&ReplaySums::writes_up>},
    {"writes_down", Kind::count, sum<&ReplaySums::writes_down>},
    {"windows", Kind::count, sum<&ReplaySums::windows>},
    {"guard_raises", Kind::count, sum<&ReplaySums::guard_raises>, true},
    {"backlog_core_seconds", Kind::amount, sum<&ReplaySums::backlog_core_seconds>, true},
    {"throttled_seconds", Kind::amount, sum<&ReplaySums::throttled_seconds>, true},
    {"longest_delay_seconds", Kind::amount, sum<&ReplaySums::longest_delay_seconds>, true},
};

}  // namespace

ReplaySums& ReplaySums::operator+=(const ReplaySums& other) {
  seconds += other.seconds;
  allocated += other.allocated;
  original += other.original;
  oracle += other.oracle;
  demanded += other.demanded;
  slack_seconds += other.slack_seconds;
  overrun += other.overrun;
  wastage += other.wastage;
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

std::span<const Measure> all_measures() { return kMeasures; }

const Measure* find_measure(std::string_view name) {
  const auto* const found = std::ranges::find(kMeasures, name, &Measure::name);
  return found == std::end(kMeasures) ? nullptr : found;
}

Value weighted_by_job(const Measure& measure, std::span<const ReplaySums> executions) {
  if (measure.kind != Kind::ratio) return measure.of(total_of(executions));
  double total = 0;
  int count = 0;
  for (const ReplaySums& sums : executions) {
    const Value value = measure.of(sums);
    if (!value) continue;
    total += *value;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return total / count;
}

double mean_of(std::string_view measure, std::span<const ReplaySums> executions) {
  const Measure* const known = find_measure(measure);
  CHECK_INVARIANT(known != nullptr);
  return weighted_by_job(*known, executions).value_or(0);
}

Value weighted_by_resource_hour(const Measure& measure, std::span<const ReplaySums> executions) {
  return measure.of(total_of(executions));
}

ReplaySums total_of(std::span<const ReplaySums> executions) {
  ReplaySums total;
  for (const ReplaySums& sums : executions) total += sums;
  return total;
}

bool measured(std::span<const ReplaySums> executions) {
  return std::ranges::any_of(executions, [](const ReplaySums& sums) { return sums.seconds > 0; });
}

}  // namespace cgphase
