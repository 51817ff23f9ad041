#include "storage/thinning.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cgphase {
namespace {

// In cores; absent if the counter or the clock went back.
std::optional<double> usage_between(const HistoryPoint& before, const HistoryPoint& point) {
  const Counter usec = growth(point.sample.cpu.usage_usec, before.sample.cpu.usage_usec);
  const double seconds = seconds_between(before, point);
  if (!usec || seconds <= 0) return std::nullopt;
  return static_cast<double>(*usec) / 1e6 / seconds;
}

// Memory comes from one reading: the highest charge with the lowest cache of a span would count
// cache that grew as need.
void keep_peaks(const HistoryPoint& before, HistoryPoint& point) {
  const Sample& old = before.sample;
  Sample& s = point.sample;
  const auto keep = [](const auto& earlier, auto& value) { value = std::max(value, earlier); };
  keep(before.peak_cpu_cores, point.peak_cpu_cores);
  if (memory_need(old) > memory_need(s)) {
    s.memory_current = old.memory_current;
    s.memory = old.memory;
    s.swap_current = old.swap_current;
  }
  keep(old.memory_peak, s.memory_peak);
  keep(old.pids_current, s.pids_current);
  keep(old.run_queue.longest_wait_usec, s.run_queue.longest_wait_usec);
  keep(old.gpu.utilisation_ratio, s.gpu.utilisation_ratio);
  keep(old.gpu.memory_utilisation_ratio, s.gpu.memory_utilisation_ratio);
  keep(old.gpu.memory_bytes, s.gpu.memory_bytes);
  for (Pressure Sample::*pressure :
       {&Sample::cpu_pressure, &Sample::memory_pressure, &Sample::io_pressure})
    for (PressureLine Pressure::*line : {&Pressure::some, &Pressure::full}) {
      keep((old.*pressure.*line).avg10_ratio, (s.*pressure.*line).avg10_ratio);
      keep((old.*pressure.*line).avg60_ratio, (s.*pressure.*line).avg60_ratio);
    }
}

}  // namespace

Thinner::Thinner(std::chrono::seconds step)
    : step_ns_(std::chrono::nanoseconds(step).count()) {
  CHECK_INVARIANT(step_ns_ > 0);
}

std::int64_t Thinner::span_of(WallTime time) const {
  const std::int64_t ns = time.time_since_epoch().count();
  return ns / step_ns_ - (ns % step_ns_ < 0 ? 1 : 0);
}

std::optional<HistoryPoint> Thinner::add(const HistoryPoint& point) {
  HistoryPoint next = point;
  // A thinned point has its peak already; the growth of its counters is only a mean.
  if (last_ && !next.peak_cpu_cores) next.peak_cpu_cores = usage_between(*last_, next);
  last_ = point;
  std::optional<HistoryPoint> whole;
  if (open_ && span_of(open_->time) == span_of(next.time)) keep_peaks(*open_, next);
  else whole = finish();
  open_ = std::move(next);
  return whole;
}

std::optional<HistoryPoint> Thinner::finish() { return std::exchange(open_, std::nullopt); }

}  // namespace cgphase
