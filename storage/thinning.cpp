#include "storage/thinning.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cgphase {
namespace {

using Columns = std::bitset<kColumnCount>;

// Columns that `point` has and an empty point does not have.
Columns columns_of(const HistoryPoint& point) {
  return to_columns(point).present & ~to_columns(HistoryPoint{}).present;
}

// Values of the moment, not sums. The bits of non-negative IEEE 754 numbers are ordered like the
// numbers, so all columns compare as integers.
Columns gauge_columns() {
  HistoryPoint gauges;
  Sample& s = gauges.sample;
  s.memory_current = s.memory_peak = s.swap_current = s.gpu.memory_bytes = Bytes{};
  MemoryStat& m = s.memory;
  for (Counter* gauge :
       {&m.anon_bytes, &m.file_bytes, &m.shmem_bytes, &m.unevictable_bytes, &m.kernel_bytes,
        &m.hugetlb_bytes, &m.slab_unreclaimable_bytes, &m.sock_bytes, &m.inactive_anon_bytes,
        &s.pids_current, &s.run_queue.longest_wait_usec})
    *gauge = 0;
  for (Pressure* pressure : {&s.cpu_pressure, &s.memory_pressure, &s.io_pressure})
    for (PressureLine* line : {&pressure->some, &pressure->full})
      line->avg10_ratio = line->avg60_ratio = 0;
  s.gpu.utilisation_ratio = s.gpu.memory_utilisation_ratio = 0;
  gauges.peak_cpu_cores = 0;
  return columns_of(gauges);
}

// Values that the working set and memory_need() subtract. Neither result may be lower after
// thinning, so these keep the lowest reading. Shared memory is subtracted too, but added at least
// as often. If memory.current is known, finish() replaces these by values that fit the highest need
// and working set.
Columns subtracted_columns() {
  HistoryPoint subtracted;
  MemoryStat& m = subtracted.sample.memory;
  m.slab_reclaimable_bytes = m.inactive_file_bytes = m.active_file_bytes = 0;
  return columns_of(subtracted);
}

// Columns that keep the last value, including absence, because a limit has several columns.
Columns state_columns() {
  HistoryPoint states;
  Sample& s = states.sample;
  for (auto* limit : {&s.limits.memory_max, &s.limits.memory_high, &s.limits.memory_low,
                      &s.limits.memory_min, &s.swap_max, &s.pids_max, &states.original.memory_max})
    *limit = MemoryLimit{Bytes{0}};
  s.limits.cpu_max = states.original.cpu_max = CpuMax{Microseconds{0}, Microseconds{0}};
  s.limits.cpu_max_burst = Microseconds{0};
  s.limits.cpu_weight = 0;
  s.populated = s.frozen = false;
  states.clock_start_ms = 0;
  return columns_of(states) | to_columns(HistoryPoint{}).present;
}

// Merges the values of `before` that must be kept into the next row.
void keep(const ColumnRow& before, ColumnRow& row) {
  static const Columns kGauges = gauge_columns(), kSubtracted = subtracted_columns(),
                       kStates = state_columns();
  for (std::size_t column = 0; column < kColumnCount; ++column) {
    if (kSubtracted[column]) {  // an absent value subtracts nothing
      row.present.set(column, row.present[column] && before.present[column]);
      row.values[column] = std::min(row.values[column], before.values[column]);
      continue;
    }
    if (kStates[column] || !before.present[column]) continue;
    if (!row.present[column] || (kGauges[column] && before.values[column] > row.values[column]))
      row.values[column] = before.values[column];
    row.present.set(column);
  }
}

void keep_highest(std::optional<std::uint64_t>& highest, std::optional<std::uint64_t> value) {
  if (value) highest = std::max(highest.value_or(0), *value);
}

// The need without swap.
std::optional<std::uint64_t> charged_need(const Sample& sample) {
  Sample charged = sample;
  charged.swap_current.reset();
  const auto need = memory_need(charged);
  return need ? std::optional(need->value) : std::nullopt;
}

std::optional<std::uint64_t> working_set(const Sample& sample) {
  if (!sample.memory_current) return std::nullopt;
  const std::uint64_t charged = sample.memory_current->value;
  return charged - std::min(charged, sample.memory.inactive_file_bytes.value_or(0));
}

// Sets the page cache so that memory.current results in this need and this working set. The highest
// charge with the lowest cache of a span would count cache that grew as need.
void fit_cache(std::uint64_t need, std::uint64_t in_use, Sample& sample) {
  MemoryStat& memory = sample.memory;
  const std::uint64_t charged = sample.memory_current->value;
  const std::uint64_t listed = std::min(charged, std::max(need, in_use));
  const std::uint64_t spare = listed - std::min(listed, need);
  const std::uint64_t slab = std::min(memory.slab_reclaimable_bytes.value_or(0), spare);
  const auto put = [](Counter& line, std::uint64_t bytes) {
    if (line || bytes > 0) line = bytes;
  };
  put(memory.inactive_file_bytes, charged - listed);
  put(memory.active_file_bytes, spare - slab);
  put(memory.slab_reclaimable_bytes, slab);
}

}  // namespace

Thinner::Thinner(std::chrono::seconds step, const std::optional<HistoryPoint>& before)
    : step_ns_(std::chrono::nanoseconds(step).count()) {
  CHECK_INVARIANT(step_ns_ > 0);
  if (before)
    before_ = {before->time, before->clock_start_ms, before->sample.cpu.usage_usec};
}

// In cores; absent if the counter or the clock went back.
std::optional<double> Thinner::usage_since_before(const HistoryPoint& point) const {
  const Counter usec = growth(point.sample.cpu.usage_usec, before_.usage_usec);
  HistoryPoint before;
  before.time = before_.time;
  before.clock_start_ms = before_.clock_start_ms;
  const double seconds = seconds_between(before, point);
  if (!usec || seconds <= 0) return std::nullopt;
  return static_cast<double>(*usec) / 1e6 / seconds;
}

std::int64_t Thinner::span_of(WallTime time) const {
  const std::int64_t ns = time.time_since_epoch().count();
  return ns / step_ns_ - (ns % step_ns_ < 0 ? 1 : 0);
}

std::optional<HistoryPoint> Thinner::add(HistoryPoint point) {
  // A thinned point has its peak already; the growth of its counters is only a mean.
  if (!point.peak_cpu_cores) point.peak_cpu_cores = usage_since_before(point);
  before_ = {point.time, point.clock_start_ms, point.sample.cpu.usage_usec};
  ColumnRow row = to_columns(point);
  std::optional<HistoryPoint> whole;
  if (open_ && span_of(open_->time) == span_of(point.time))
    keep(open_->row, row);
  else
    whole = finish();
  if (!open_) open_.emplace();
  open_->time = point.time;
  open_->id = point.sample.id;
  open_->row = row;
  keep_highest(open_->charged_need, charged_need(point.sample));
  keep_highest(open_->working_set, working_set(point.sample));
  return whole;
}

std::optional<HistoryPoint> Thinner::finish() {
  if (!open_) return std::nullopt;
  HistoryPoint point;
  CHECK_INVARIANT(from_columns(open_->row, point));
  point.time = open_->time;
  point.sample.id = open_->id;
  if (open_->charged_need && open_->working_set)
    fit_cache(*open_->charged_need, *open_->working_set, point.sample);
  open_.reset();
  return point;
}

}  // namespace cgphase
