#include "policy/safety/usage_tracker.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "policy/ceiling.h"

namespace cgphase {
namespace {

// The time span of the kernel's avg10. The substitutes use the same.
constexpr std::chrono::seconds kStrainMemory{10};
constexpr std::size_t kMostThrottlings = 256;
// The kernel updates its stall sums every 2 s. Over a shorter time they grow by nothing or by twice
// as much. The span is a little shorter, for ticks that come slightly early.
constexpr std::chrono::milliseconds kStallSpan{1900};
constexpr DecayingHistogram::Shape kAllocationShape{1e6, 3600};
constexpr double kAllocationQuantile = 0.99;

bool grew(const Counter& before, const Counter& now) {
  return growth(now, before).value_or(0) > 0;
}

std::optional<double> rate(const Counter& before, const Counter& now, double interval) {
  const Counter count = growth(now, before);
  return count ? std::optional(static_cast<double>(*count) / interval) : std::nullopt;
}

// memory.current includes pages that processors reserve for later, and memory.stat lags by the same
// amount: up to 64 pages per processor (MEMCG_CHARGE_BATCH in include/linux/memcontrol.h).
// Unexplained need varies by this much while nothing is allocated.
double batches_of(const HostCapacity& host) {
  constexpr double kBatchPages = 64;
  return 2 * kBatchPages * static_cast<double>(host.page.value) * host.cpu_cores;
}

bool passed(const std::optional<MonotonicTime>& until, MonotonicTime now) {
  return !until || now >= *until;
}

}  // namespace

void NeedWindow::clear() {
  pieces_.clear();
  first_.reset();
}

void NeedWindow::add(MonotonicTime time, double bytes) {
  if (!first_) first_ = time;
  latest_ = time;
  const auto piece = length_ / static_cast<std::int64_t>(kPieces - 1);
  if (pieces_.empty() || time - pieces_.back().begin >= piece) {
    pieces_.push_back({time, bytes, bytes});
  } else {
    pieces_.back().low = std::min(pieces_.back().low, bytes);
    pieces_.back().high = std::max(pieces_.back().high, bytes);
  }
  while (pieces_.size() > kPieces || time - pieces_.front().begin > length_) pieces_.pop_front();
}

bool NeedWindow::full() const { return first_ && *latest_ - *first_ >= length_; }

double NeedWindow::low() const {
  const auto less = [](const Piece& a, const Piece& b) { return a.low < b.low; };
  return pieces_.empty() ? 0 : std::min_element(pieces_.begin(), pieces_.end(), less)->low;
}

double NeedWindow::high() const {
  const auto less = [](const Piece& a, const Piece& b) { return a.high < b.high; };
  return pieces_.empty() ? 0 : std::max_element(pieces_.begin(), pieces_.end(), less)->high;
}

UsageTracker::UsageTracker(const SafetyConfig& config)
    : config_(config),
      peak_(kMemoryHorizon),
      dwell_(config.dwell),
      allocation_(kAllocationShape) {}

void UsageTracker::add(const SafetyInput& input, bool lost) {
  samples_ += 1;
  follow_need(input);
  follow_stalls(input);
  measure(input);
  follow_usage(input, lost);
  follow_throttling(input);
  judge_pressure(input);
  last_time_ = input.time;
}

void UsageTracker::follow_need(const SafetyInput& input) {
  const auto as_double = [](const std::optional<Bytes>& bytes) {
    return bytes ? std::optional(static_cast<double>(bytes->value)) : std::nullopt;
  };
  const auto explained_before =
      std::exchange(explained_, as_double(explained_memory_need(*input.sample)));
  need_before_ = need_;
  need_ = as_double(memory_need(*input.sample));
  need_rate_ = grown_ = 0;
  if (input.gap || !need_) {
    dwell_.clear();
    need_before_.reset();
  }
  if (!need_) return;
  peak_.add(input.time, *need_);
  dwell_.add(input.time, *need_);
  if (!need_before_ || !(input.interval_seconds > 0)) return;
  need_rate_ = (*need_ - *need_before_) / input.interval_seconds;
  grown_ = *need_ - *need_before_ - batches_of(input.host);
  if (explained_ && explained_before) grown_ = std::max(grown_, *explained_ - *explained_before);
  allocation_.add(std::max(grown_, 0.0) / input.interval_seconds, input.interval_seconds,
                  seconds_of(input.time));
}

void UsageTracker::follow_stalls(const SafetyInput& input) {
  if (input.gap || !input.previous) stalls_.clear();
  const Sample& now = *input.sample;
  stalls_.push_back({input.time, now.cpu_pressure.some.total_usec,
                     now.memory_pressure.some.total_usec, now.io_pressure.some.total_usec});
  while (stalls_.size() > 2 && input.time - stalls_[1].time >= kStallSpan)
    stalls_.erase(stalls_.begin());
}

// Share of the time that was stalled. Without sums it is the kernel's average.
std::optional<double> UsageTracker::stall(Counter Stalls::*sum, const PressureLine& line) const {
  const Stalls &first = stalls_.front(), &last = stalls_.back();
  const double seconds = seconds_of(last.time) - seconds_of(first.time);
  const Counter usec = growth(last.*sum, first.*sum);
  if (usec && last.time - first.time >= kStallSpan)
    return static_cast<double>(*usec) / 1e6 / seconds;
  return line.avg10_ratio;
}

void UsageTracker::measure(const SafetyInput& input) {
  measures_ = {};
  if (!input.previous || input.gap || !(input.interval_seconds > 0)) return;
  const Sample& before = *input.previous;
  const Sample& now = *input.sample;
  const double interval = input.interval_seconds;
  const auto set = [&](Measure measure, std::optional<double> value) {
    measures_[static_cast<std::size_t>(measure)] = value;
  };
  const auto per_second_of_usec = [&](const Counter& from, const Counter& to) {
    const auto usec = rate(from, to, interval);
    return usec ? std::optional(*usec / 1e6) : std::nullopt;
  };
  set(Measure::cpu_stall, stall(&Stalls::cpu, now.cpu_pressure.some));
  set(Measure::memory_stall, stall(&Stalls::memory, now.memory_pressure.some));
  set(Measure::io_stall, stall(&Stalls::io, now.io_pressure.some));
  set(Measure::refaults, rate(before.memory.workingset_refault_file,
                              now.memory.workingset_refault_file, interval));
  set(Measure::major_faults, rate(before.memory.pgmajfault, now.memory.pgmajfault, interval));
  set(Measure::throttled, per_second_of_usec(before.cpu.throttled_usec, now.cpu.throttled_usec));
  set(Measure::cpu_cores, per_second_of_usec(before.cpu.usage_usec, now.cpu.usage_usec));
  set(Measure::gpu_utilisation, now.gpu.utilisation_ratio);
}

// Throttled seconds must count. Without them only the quiet seconds would describe the phase, and
// each lowering would allow the next.
void UsageTracker::follow_usage(const SafetyInput& input, bool lost) {
  const auto used = cpu_cores();
  cpu_measured_ = cpu_measured_ || used;
  if (!used || lost) return;
  const Sample& before = *input.previous;
  const Sample& now = *input.sample;
  double cores = *used;
  if (grew(before.cpu.nr_throttled, now.cpu.nr_throttled) ||
      grew(before.cpu.throttled_usec, now.cpu.throttled_usec))
    cores = std::max(cores, std::min(cpu_ceiling_cores(before.limits, input.host),
                                     cpu_ceiling_cores(now.limits, input.host)));
  usage_.add(input.phase, cores, input.interval_seconds, input.time);
}

void UsageTracker::follow_throttling(const SafetyInput& input) {
  while (!throttling_.empty() &&
         (input.time - throttling_.front().time >= config_.throttled_window ||
          throttling_.size() >= kMostThrottlings))
    throttling_.erase(throttling_.begin());
  throttled_seconds_ = 0;
  if (!input.previous) return;
  throttled_seconds_ = static_cast<double>(growth(input.sample->cpu.throttled_usec,
                                                  input.previous->cpu.throttled_usec)
                                               .value_or(0)) /
                       1e6;
  // If a raise came within the interval, the throttling before it is unknown.
  if (answered_ > last_time_) return;
  const CpuStat& before = input.previous->cpu;
  const CpuStat& now = input.sample->cpu;
  const double usec =
      static_cast<double>(growth(now.throttled_usec, before.throttled_usec).value_or(0));
  const std::uint64_t periods = growth(now.nr_throttled, before.nr_throttled).value_or(0);
  if (usec > 0 || periods > 0) throttling_.push_back({input.time, usec, periods});
}

bool UsageTracker::throttled() const {
  double usec = 0;
  std::uint64_t periods = 0;
  for (const Throttling& one : throttling_) {
    usec += one.usec;
    periods += one.periods;
  }
  const double window = std::chrono::duration<double>(config_.throttled_window).count();
  return usec / 1e6 > config_.throttled_ratio * window ||
         periods >= static_cast<std::uint64_t>(config_.throttled_periods);
}

void UsageTracker::judge_pressure(const SafetyInput& input) {
  const Sample& now = *input.sample;
  if (input.previous) {
    const Sample& before = *input.previous;
    if (grew(before.memory.workingset_refault_file, now.memory.workingset_refault_file) ||
        grew(before.memory.workingset_refault_anon, now.memory.workingset_refault_anon) ||
        grew(before.memory.pgmajfault, now.memory.pgmajfault) ||
        grew(before.memory.pgscan_direct, now.memory.pgscan_direct))
      memory_strain_until_ = input.time + kStrainMemory;
    if (grew(before.cpu.nr_throttled, now.cpu.nr_throttled))
      throttle_strain_until_ = input.time + kStrainMemory;
  }
  const auto calm = [&](const Pressure& pressure, double most,
                        const std::optional<MonotonicTime>& strain_until) {
    const auto avg10 = pressure.some.avg10_ratio;
    return avg10 ? *avg10 < most : passed(strain_until, input.time);
  };
  cpu_quiet_ = calm(now.cpu_pressure, config_.quiet_cpu_some_avg10, throttle_strain_until_);
  memory_io_quiet_ =
      calm(now.memory_pressure, config_.quiet_memory_io_some_avg10, memory_strain_until_) &&
      calm(now.io_pressure, config_.quiet_memory_io_some_avg10, memory_strain_until_);
  stalled_ = now.memory_pressure.full.avg10_ratio.value_or(0) > config_.stall_full_avg10;
}

bool UsageTracker::quiet(Resource resource) const {
  const bool cpu_matters = resource == Resource::cpu || config_.cpu_pressure_holds_memory;
  return memory_io_quiet_ && (cpu_quiet_ || !cpu_matters);
}

std::optional<double> UsageTracker::cpu_cores() const {
  return measures_[static_cast<std::size_t>(Measure::cpu_cores)];
}

Evidence UsageTracker::evidence(const Sample& sample) const {
  Evidence evidence = evidence_of(sample);
  const auto measured = [&](Measure measure) {
    return measures_[static_cast<std::size_t>(measure)];
  };
  evidence[Fact::cpu_cores] = measured(Measure::cpu_cores);
  evidence[Fact::throttled_ratio] = measured(Measure::throttled);
  evidence[Fact::refaults_per_sec] = measured(Measure::refaults);
  evidence[Fact::major_faults_per_sec] = measured(Measure::major_faults);
  if (need_) evidence[Fact::memory_peak_need_bytes] = peak_.high();
  if (need_before_) evidence[Fact::memory_growth_bytes_per_sec] = need_rate_;
  return evidence;
}

bool UsageTracker::know(const Phase& phase, double enough_samples) const {
  const double samples = cpu_measured_ ? usage_.samples(phase) : samples_;
  return samples >= enough_samples && (peak_.full() || !need_);
}

double UsageTracker::allocation_p99_bytes_per_sec() const {
  const auto fastest = allocation_.quantile(kAllocationQuantile);
  // The lowest bucket counts as no allocation.
  return fastest && *fastest > kAllocationShape.first ? *fastest : 0;
}

bool UsageTracker::steady(double limit_bytes) const {
  return dwell_.full() && dwell_.high() - dwell_.low() <= config_.steady_ratio * limit_bytes;
}

bool UsageTracker::growing(double limit_bytes) const {
  return grown_ > config_.growing_ratio * limit_bytes;
}

}  // namespace cgphase
