#include "control/guard_rule.h"

namespace cgphase {
namespace {

double seconds_between(MonotonicTime from, MonotonicTime to) {
  return std::chrono::duration<double>(to - from).count();
}

// Above the ratio now, or, at the pace since `before`, above the limit within kGrowthHorizon.
bool close_to(double limit, double now, std::optional<double> before, double seconds) {
  if (now > kAtRiskRatio * limit) return true;
  if (!before || seconds <= 0) return false;
  const double growth_per_second = (now - *before) / seconds;
  return now + growth_per_second * static_cast<double>(kGrowthHorizon.count()) > limit;
}

std::optional<double> value_of(const std::optional<Bytes>& bytes) {
  if (!bytes) return std::nullopt;
  return static_cast<double>(bytes->value);
}

bool grew(const Counter& now, const Counter& before) { return now && before && *now > *before; }

}  // namespace

bool GuardRule::needs_need(const GuardReading& reading) const {
  const auto current = value_of(reading.memory_current);
  if (!current || !reading.memory_max || !reading.memory_max->bytes) return false;
  const auto before = previous_ ? value_of(previous_->memory_current) : std::nullopt;
  const double seconds = previous_ ? seconds_between(previous_->time, reading.time) : 0;
  return close_to(*value_of(reading.memory_max->bytes), *current, before, seconds);
}

MemoryRisk GuardRule::judge_memory(const GuardReading& reading) const {
  if (previous_ && (grew(reading.max_events, previous_->max_events) ||
                    grew(reading.oom_events, previous_->oom_events)))
    return MemoryRisk::event;
  const auto need = value_of(reading.memory_need);
  if (!need || !reading.memory_max || !reading.memory_max->bytes) return MemoryRisk::none;
  const auto before = previous_ ? value_of(previous_->memory_need) : std::nullopt;
  const double seconds = previous_ ? seconds_between(previous_->time, reading.time) : 0;
  const double limit = *value_of(reading.memory_max->bytes);
  return close_to(limit, *need, before, seconds) ? MemoryRisk::headroom : MemoryRisk::none;
}

CpuRaise GuardRule::judge_cpu(const GuardReading& reading) {
  if (!reading.throttled_usec) return CpuRaise::none;
  const bool fell = window_ && *reading.throttled_usec < *window_->throttled_usec;
  if (!window_ || fell) {
    window_ = reading;
    return CpuRaise::none;
  }
  const auto allowed_usec =
      kThrottledRatio * static_cast<double>(std::chrono::microseconds(kThrottledWindow).count());
  const auto throttled_usec =
      static_cast<double>(*reading.throttled_usec - *window_->throttled_usec);
  if (throttled_usec > allowed_usec) {
    window_ = reading;
    const bool again = last_cpu_raise_ && reading.time - *last_cpu_raise_ <= kSecondRaiseWindow;
    return again ? CpuRaise::to_original : CpuRaise::by_factor;
  }
  if (reading.time - window_->time >= kThrottledWindow) window_ = reading;
  return CpuRaise::none;
}

GuardVerdict GuardRule::step(const GuardReading& reading) {
  GuardVerdict verdict;
  verdict.memory = judge_memory(reading);
  verdict.at_risk = verdict.memory != MemoryRisk::none || needs_need(reading) ||
                    (previous_ && grew(reading.throttled_usec, previous_->throttled_usec));
  verdict.cpu = judge_cpu(reading);
  previous_ = reading;
  return verdict;
}

}  // namespace cgphase
