#include "collectors/sample_filter.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

namespace cgphase {
namespace {

// Counters that only grow; CPU time comes first.
constexpr std::size_t kCpuCounters = 3;
constexpr auto counters_of = [](auto& s) {
  auto& c = s.cpu;
  auto& m = s.memory;
  return std::array{
      &c.usage_usec, &c.user_usec, &c.system_usec, &c.nr_periods, &c.nr_throttled,
      &c.throttled_usec, &m.pgfault, &m.pgmajfault, &m.workingset_refault_file,
      &m.workingset_refault_anon, &m.pgscan, &m.pgsteal, &m.pgscan_direct, &s.memory_events.high,
      &s.memory_events.max, &s.memory_events.oom, &s.memory_events.oom_kill, &s.io.read_bytes,
      &s.io.write_bytes, &s.io.read_ios, &s.io.write_ios, &s.cpu_pressure.some.total_usec,
      &s.memory_pressure.some.total_usec, &s.io_pressure.some.total_usec};
};

}  // namespace

SampleFilter::Reading SampleFilter::reading_of(MonotonicTime time, const Sample& sample) {
  Reading reading{.time = time, .counters = {}};
  const auto counters = counters_of(sample);
  static_assert(std::tuple_size_v<decltype(counters)> == kCounters);
  for (std::size_t i = 0; i < kCounters; ++i) reading.counters[i] = *counters[i];
  return reading;
}

SampleFilter::Growth SampleFilter::most_growth(MonotonicTime now, MonotonicTime before,
                                               const HostCapacity& host) {
  const auto whole = [](double most) { return static_cast<std::uint64_t>(std::min(most, 1e19)); };
  constexpr double kSlack = std::chrono::duration<double>(kCpuTimeSlack).count();
  const double seconds = seconds_between(before, now);
  const std::uint64_t counts = whole(kMostCountsPerSecond * std::max(seconds, 1.0));
  if (!(host.cpu_cores > 0)) return {counts, counts};
  return {whole(std::max(host.cpu_cores * (seconds * kCpuTimeTolerance + kSlack) * 1e6, 0.0)),
          counts};
}

// A counter that fell has restarted. That is no jump.
bool SampleFilter::follows(const Reading& now, const Reading& before, const Growth& most,
                           std::size_t counter) {
  const Counter grown = growth(now.counters[counter], before.counters[counter]);
  return !grown || *grown <= (counter < kCpuCounters ? most.cpu_usec : most.counts);
}

bool SampleFilter::follows(const Reading& now, const Reading& before, const HostCapacity& host) {
  const Growth most = most_growth(now.time, before.time, host);
  for (std::size_t i = 0; i < kCounters; ++i)
    if (!follows(now, before, most, i)) return false;
  return true;
}

// True if the host can have these amounts. With `reset`, the others become absent.
template <bool reset>
bool SampleFilter::fits(const HostCapacity& host, auto& sample) {
  bool fit = true;
  const std::uint64_t most =
      host.memory.value == 0 ? UINT64_MAX : saturating_add(host.memory.value, host.swap.value);
  const auto check = [&](auto& amount, std::uint64_t bytes, std::uint64_t bound) {
    if (bytes <= bound) return true;
    fit = false;
    if constexpr (reset) amount.reset();
    return false;
  };
  auto& m = sample.memory;
  for (auto* bytes :
       {&m.anon_bytes, &m.file_bytes, &m.shmem_bytes, &m.unevictable_bytes, &m.hugetlb_bytes,
        &m.kernel_bytes, &m.slab_reclaimable_bytes, &m.slab_unreclaimable_bytes, &m.sock_bytes,
        &m.inactive_file_bytes, &m.active_file_bytes, &m.inactive_anon_bytes})
    check(*bytes, bytes->value_or(0), most);
  check(sample.memory_peak, sample.memory_peak.value_or(Bytes{}).value, most);
  bool counted = true;
  for (auto* bytes : {&sample.memory_current, &sample.swap_current})
    counted = check(*bytes, bytes->value_or(Bytes{}).value, most) && counted;
  // Without both of these, need would be too small.
  if constexpr (reset)
    if (!counted) m = {};
  check(sample.pids_current, sample.pids_current.value_or(0), kMostTasks);
  return fit;
}

bool SampleFilter::accept(MonotonicTime time, const HostCapacity& host, const Sample& sample) {
  const Reading now = reading_of(time, sample);
  if (!fits<false>(host, sample) || (sound_ && !follows(now, *sound_, host))) return false;
  sound_ = now;
  suspect_.reset();
  left_out_ = 0;
  return true;
}

bool SampleFilter::mend(MonotonicTime time, const HostCapacity& host, Sample& sample) {
  const Reading now = reading_of(time, sample);
  const bool lasts = suspect_ && follows(now, *suspect_, host) &&
                     fits<false>(host, std::as_const(sample));
  suspect_ = now;
  if (!lasts && left_out_ < kMostLeftOut) {
    ++left_out_;
    return false;
  }
  if (lasts) left_out_ = 0;
  fits<true>(host, sample);
  const auto counters = counters_of(sample);
  const Growth most = most_growth(now.time, sound_ ? sound_->time : now.time, host);
  for (std::size_t i = 0; sound_ && i < kCounters; ++i)
    if (!follows(now, *sound_, most, i)) counters[i]->reset();
  sound_ = now;
  return true;
}

}  // namespace cgphase
