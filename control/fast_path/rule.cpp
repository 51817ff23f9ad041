#include "control/fast_path/rule.h"

#include <algorithm>

namespace cgphase {
namespace {

std::optional<double> value_of(const std::optional<Bytes>& bytes) {
  if (!bytes) return std::nullopt;
  return static_cast<double>(bytes->value);
}

bool grew(const Counter& now, const Counter& before) { return now && before && *now > *before; }

// The lower of memory.max and our memory.high. The kernel keeps all memory below it, page cache
// too.
std::optional<double> lowest_limit(const FastPathReading& reading) {
  std::optional<double> lowest;
  for (const auto* limit : {&reading.memory_max, &reading.memory_high}) {
    if (!*limit || !(*limit)->bytes) continue;
    const double bytes = *value_of((*limit)->bytes);
    lowest = std::min(lowest.value_or(bytes), bytes);
  }
  return lowest;
}

// Whether tasks stall in reclaim that frees too little, or that has nothing left to free.
bool reclaims_in_vain(const FastPathReading& now, const FastPathReading& before,
                      double stall_full_avg10) {
  if (now.full_avg10 && *now.full_avg10 > stall_full_avg10) return true;
  const auto cache = value_of(now.page_cache), current = value_of(now.memory_current);
  if (cache && current && *cache < kStallFileRatio * *current) return true;
  if (!grew(now.pgscan, before.pgscan) || !now.pgsteal || !before.pgsteal) return false;
  const auto scanned = static_cast<double>(*now.pgscan - *before.pgscan);
  const auto freed = static_cast<double>(*now.pgsteal) - static_cast<double>(*before.pgsteal);
  return freed < kStallReclaimRatio * scanned;
}

}  // namespace

void FastPathRule::pause() {
  previous_.reset();
  growth_base_.reset();
  window_.reset();
  stall_window_.reset();
  delay_ = {};
  met_high_.reset();
}

// Whether the use is above the ratio now, or would pass the limit within at_risk_growth at the pace
// measured since the base.
bool FastPathRule::close_to_limit(const FastPathReading& reading,
                               std::optional<Bytes> FastPathReading::*use) const {
  const auto now = value_of(reading.*use);
  const auto limit = lowest_limit(reading);
  if (!now || !limit) return false;
  if (*now > numbers_.at_risk_ratio * *limit) return true;
  if (!growth_base_ || reading.time - growth_base_->time < kGrowthBaseline) return false;
  const auto before = value_of((*growth_base_).*use);
  if (!before) return false;
  const double pace = (*now - *before) / seconds_between(growth_base_->time, reading.time);
  return *now + pace * static_cast<double>(numbers_.at_risk_growth.count()) > *limit;
}

bool FastPathRule::needs_detail(const FastPathReading& reading) const {
  return close_to_limit(reading, &FastPathReading::memory_current) ||
         (previous_ && grew(reading.high_events, previous_->high_events));
}

bool FastPathRule::stalls(const FastPathReading& reading) {
  const bool over = stall_window_ && reading.time - stall_window_->time > kStallWindow;
  if (over || (stall_window_ && grew(stall_window_->high_events, reading.high_events)))
    stall_window_.reset();
  if (!stall_window_ && previous_ && grew(reading.high_events, previous_->high_events)) {
    // The scans before this first event were not read, so only later ones are compared.
    stall_window_ = reading;
    stall_window_->high_events = previous_->high_events;
  }
  if (!stall_window_ || !reading.high_events) return false;
  return reading.full_stall ||
         (*reading.high_events - *stall_window_->high_events >= kStallHighEvents &&
          reclaims_in_vain(reading, *stall_window_, numbers_.stall_full_avg10));
}

// Whether memory.high caused more delay than its bound allows.
bool FastPathRule::delayed(const FastPathReading& reading) {
  const auto high = reading.memory_high ? value_of(reading.memory_high->bytes) : std::nullopt;
  const auto above = [&](const FastPathReading& one) {
    const auto current = value_of(one.memory_current);
    return high && current && *current > *high * kAboveHighRatio;
  };
  if (!high || !previous_) return false;
  const auto current = value_of(reading.memory_current);
  if (grew(reading.high_events, previous_->high_events) ||
      (current && *current > numbers_.at_risk_ratio * *high))
    met_high_ = reading.time;
  const auto elapsed = reading.time - previous_->time;
  std::chrono::nanoseconds stalled{0};
  if (reading.stalled_usec) {
    const bool ours = met_high_ && reading.time - *met_high_ <= kDelayBlame;
    if (ours && grew(reading.stalled_usec, previous_->stalled_usec))
      stalled = std::chrono::microseconds(*reading.stalled_usec - *previous_->stalled_usec);
  } else if (above(*previous_) && above(reading)) {
    stalled = elapsed;
  }
  return delay_.add(stalled, elapsed);
}

MemoryRisk FastPathRule::judge_memory(const FastPathReading& reading) {
  if (previous_ && (grew(reading.max_events, previous_->max_events) ||
                    grew(reading.oom_events, previous_->oom_events)))
    return MemoryRisk::event;
  const bool too_much_delay = delayed(reading);
  if (stalls(reading) || too_much_delay) return MemoryRisk::stall;
  const auto limit = lowest_limit(reading);
  if (!limit) return MemoryRisk::none;
  // If a container is far from its limit, the limit did not cause its stall.
  const auto current = value_of(reading.memory_current);
  if (reading.full_stall && current && *current > numbers_.at_risk_ratio * *limit)
    return MemoryRisk::pressure;
  return close_to_limit(reading, &FastPathReading::memory_need) ? MemoryRisk::headroom
                                                             : MemoryRisk::none;
}

CpuRaise FastPathRule::judge_cpu(const FastPathReading& reading) {
  if (!reading.throttled_usec) return CpuRaise::none;
  const bool fell = window_ && *reading.throttled_usec < *window_->throttled_usec;
  if (!window_ || fell) {
    window_ = reading;
    return CpuRaise::none;
  }
  const auto allowed_usec =
      numbers_.throttled_ratio *
      static_cast<double>(std::chrono::microseconds(kFastPathThrottledWindow).count());
  const auto throttled_usec =
      static_cast<double>(*reading.throttled_usec - *window_->throttled_usec);
  if (throttled_usec > allowed_usec) {
    window_ = reading;
    const bool again =
        last_cpu_raise_ && reading.time - *last_cpu_raise_ <= numbers_.cpu_raises_window;
    return again ? CpuRaise::to_original : CpuRaise::by_factor;
  }
  if (reading.time - window_->time >= kFastPathThrottledWindow) window_ = reading;
  return CpuRaise::none;
}

void PressureAlert::step(MonotonicTime now, bool memory, bool cpu, bool throttled) {
  if (throttled) last_throttled_ = now;
  if (memory || cpu) alert_until_ = now + kGuardAlert;
  if (!cpu) return;
  const bool first = !last_cpu_ || now - *last_cpu_ >= kPressureQuiet;
  last_cpu_ = now;
  if (!first && (!last_throttled_ || now - *last_throttled_ >= kGuardAlert)) return;
  period_until_ = now + kPeriodSpan;
}

FastPathVerdict FastPathRule::step(const FastPathReading& reading) {
  FastPathVerdict verdict;
  verdict.memory = judge_memory(reading);
  verdict.throttled =
      previous_ && (grew(reading.throttled_usec, previous_->throttled_usec) ||
                    grew(reading.throttled_periods, previous_->throttled_periods));
  verdict.at_risk = verdict.memory != MemoryRisk::none || needs_detail(reading) ||
                    (verdict.throttled && reading.quota_is_ours);
  verdict.cpu = judge_cpu(reading);
  const bool populated_before = previous_ && previous_->populated.value_or(true);
  verdict.restarted = reading.populated == false || (previous_ && !populated_before &&
                                                     reading.populated == true);
  previous_ = reading;
  if (!growth_base_ || reading.time - growth_base_->time >= kGrowthBaseline)
    growth_base_ = reading;
  return verdict;
}

}  // namespace cgphase
