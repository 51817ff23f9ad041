#include "lab/replay/demand.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "core/core.h"

namespace cgphase {
namespace {

bool near_limit(double value, std::optional<double> limit) {
  return limit && value >= kCensoredRatio * *limit;
}

void add_rates(const Sample& now, const Sample& before, const Limits& original,
               DemandPoint& point) {
  if (const Counter used = growth(now.cpu.usage_usec, before.cpu.usage_usec))
    point.cpu_cores = static_cast<double>(*used) / 1e6 / point.interval_seconds;
  point.throttled = growth(now.cpu.nr_throttled, before.cpu.nr_throttled).value_or(0) > 0;
  const auto cores = original.cpu_cores();
  point.cpu_censored =
      point.throttled || (point.cpu_cores && cores && near_limit(*point.cpu_cores, cores->value));
  point.memory_censored |= growth(now.memory_events.max, before.memory_events.max).value_or(0) > 0;
}

DemandPoint point_of(const TraceRow& row, const Limits& original) {
  DemandPoint point{.seconds = seconds_of(row.time)};
  if (const auto need = memory_need(row.sample)) {
    point.memory_bytes = static_cast<double>(need->value);
    const auto bytes = original.memory_bytes();
    if (bytes)
      point.memory_censored = near_limit(*point.memory_bytes, static_cast<double>(bytes->value));
  }
  if (const auto current = row.sample.memory_current) {
    const double inactive =
        static_cast<double>(row.sample.memory.inactive_file_bytes.value_or(0));
    point.working_set_bytes = std::max(0.0, static_cast<double>(current->value) - inactive);
  }
  return point;
}

}  // namespace

double cadence_of(const Execution& execution) {
  std::vector<double> distances;
  for (std::size_t i = 1; i < execution.rows.size(); ++i) {
    const double distance =
        seconds_of(execution.rows[i].time) - seconds_of(execution.rows[i - 1].time);
    if (distance > 0) distances.push_back(distance);
  }
  if (distances.empty()) return 1;
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

HostCapacity told_host(const ExecutionHeader& execution) {
  HostCapacity host = execution.host;
  if (!execution.host_cores_told && execution.original.cpu_cores()) host.cpu_cores = 0;
  if (!execution.host_memory_told && execution.original.memory_bytes()) host.memory = {};
  return host;
}

std::vector<DemandPoint> demand_of(const Execution& execution, double cadence_seconds) {
  std::vector<DemandPoint> points;
  points.reserve(execution.rows.size());
  for (const TraceRow& row : execution.rows) {
    DemandPoint point = point_of(row, execution.original);
    if (!points.empty()) {
      const double interval = point.seconds - points.back().seconds;
      if (interval > 0 && interval <= kGapIntervals * cadence_seconds) {
        point.interval_seconds = interval;
        const Sample& before = execution.rows[points.size() - 1].sample;
        add_rates(row.sample, before, execution.original, point);
      }
    }
    points.push_back(point);
  }
  return points;
}

}  // namespace cgphase
