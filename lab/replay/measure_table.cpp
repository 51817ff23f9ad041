#include "lab/replay/measure_table.h"

#include <algorithm>

namespace cgphase {
namespace {

using Kind = Measure::Kind;
using Value = std::optional<double>;

template <double ReplayMeasures::* field>
Value ratio(const ReplaySums& sums) {
  if (!(sums.seconds > 0)) return std::nullopt;
  return measures_of(sums).*field;
}

Value gap_to_oracle(const ReplaySums& sums) {
  return sums.seconds > 0 ? measures_of(sums).gap_to_oracle : std::nullopt;
}

Value windows_clean(const ReplaySums& sums) {
  if (sums.windows == 0) return std::nullopt;
  return ratio<&ReplayMeasures::windows_clean>(sums);
}

Value overrun_area(const ReplaySums& sums) {
  if (!(sums.demanded > 0)) return std::nullopt;
  return ratio<&ReplayMeasures::overrun_area>(sums);
}

Value censored(const ReplaySums& sums) {
  if (sums.samples == 0) return std::nullopt;
  return static_cast<double>(sums.samples_censored) / static_cast<double>(sums.samples);
}

template <auto field>
Value sum(const ReplaySums& sums) {
  return static_cast<double>(sums.*field);
}

constexpr Measure kMeasures[] = {
    {"alloc_vs_static", Kind::ratio, ratio<&ReplayMeasures::alloc_vs_static>},
    {"slack", Kind::ratio, ratio<&ReplayMeasures::slack>},
    {"samples_over", Kind::ratio, ratio<&ReplayMeasures::samples_over>},
    {"windows_clean", Kind::ratio, windows_clean},
    {"overrun_area", Kind::ratio, overrun_area},
    {"gap_to_oracle", Kind::ratio, gap_to_oracle},
    {"above_oracle", Kind::ratio, ratio<&ReplayMeasures::above_oracle>},
    {"censored", Kind::ratio, censored},
    {"would_oom", Kind::count, sum<&ReplaySums::would_oom>},
    {"would_oom_working_set", Kind::count, sum<&ReplaySums::would_oom_working_set>},
    {"writes_up", Kind::count, sum<&ReplaySums::writes_up>},
    {"writes_down", Kind::count, sum<&ReplaySums::writes_down>},
    {"windows", Kind::count, sum<&ReplaySums::windows>},
    {"guard_raises", Kind::count, sum<&ReplaySums::guard_raises>, true},
    {"backlog_core_seconds", Kind::seconds, sum<&ReplaySums::backlog_core_seconds>, true},
    {"throttled_seconds", Kind::seconds, sum<&ReplaySums::throttled_seconds>, true},
    {"longest_delay_seconds", Kind::seconds, sum<&ReplaySums::longest_delay_seconds>, true},
};

}  // namespace

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

Value weighted_by_resource_hour(const Measure& measure, std::span<const ReplaySums> executions) {
  return measure.of(total_of(executions));
}

ReplaySums total_of(std::span<const ReplaySums> executions) {
  ReplaySums total;
  for (const ReplaySums& sums : executions) total += sums;
  return total;
}

std::vector<ReplaySums> sums_of(const ContenderResult& result, Resource resource) {
  std::vector<ReplaySums> executions;
  for (const ExecutionResult& execution : result.executions)
    executions.push_back(resource == Resource::cpu ? execution.cpu : execution.memory);
  return executions;
}

bool measured(std::span<const ReplaySums> executions) {
  return std::ranges::any_of(executions, [](const ReplaySums& sums) { return sums.seconds > 0; });
}

}  // namespace cgphase
