#include "core/sleep.h"

#include <algorithm>

#include "core/reclaim.h"

namespace cgphase {
namespace {

// Awake again: its tasks waited less than this between two samples, or so much time has passed.
constexpr std::uint64_t kAwakeUsec = 1000;
constexpr std::chrono::seconds kLongestWake{30};

}  // namespace

void IdleSleep::add(const Sample& previous, const Sample& sample, std::optional<double> cpu_cores,
                    bool phase_known, MonotonicTime now) {
  follow_charge(previous, sample);
  swap_current_ = sample.swap_current;
  const bool quiet = phase_known && cpu_cores && *cpu_cores <= kIdleCores;
  if (quiet && !idle_since_) idle_since_ = now;
  if (!quiet && idle_since_) {
    idle_since_.reset();
    waking_ = asleep_bytes_ >= kLeastAsleep;
    if (waking_) wake_ = Wake{.time = now, .asleep = asleep(), .waited = {}};
    asleep_bytes_ = asked_bytes_ = taken_bytes_ = 0;
    swap_takes_ = true;
    swap_before_.reset();
  }
  if (waking_) follow_wake(previous, sample, now);
}

void IdleSleep::ask(Bytes bytes, bool swap) {
  asked_bytes_ = static_cast<double>(bytes.value);
  swap_before_ = swap ? swap_current_ : std::nullopt;
}

// A container may free memory by itself meanwhile, so at most what was reclaimed counts.
void IdleSleep::follow_charge(const Sample& previous, const Sample& sample) {
  if (!idle_since_ || !previous.memory_current || !sample.memory_current) return;
  const double freed = bytes_of(previous.memory_current) - bytes_of(sample.memory_current);
  const double taken = std::min(freed, taken_bytes_);
  asleep_bytes_ = std::max(asleep_bytes_ + taken, 0.0);
  taken_bytes_ -= std::max(taken, 0.0);
  if (!swap_before_ || taken <= 0) return;
  swap_takes_ = bytes_of(sample.swap_current) > bytes_of(swap_before_);
  swap_before_.reset();
}

void IdleSleep::follow_wake(const Sample& previous, const Sample& sample, MonotonicTime now) {
  const Counter waited = growth(sample.memory_pressure.some.total_usec,
                                previous.memory_pressure.some.total_usec);
  if (waited)
    wake_->waited = wake_->waited.value_or(std::chrono::microseconds{}) +
                    std::chrono::microseconds(*waited);
  waking_ = waited.value_or(0) >= kAwakeUsec && now - wake_->time < kLongestWake;
}

// All phases that may be next begin at the same time. None: such a phase never ended.
bool ends_soon(const std::optional<Forecast>& forecast) {
  return forecast && !forecast->next.empty() && forecast->next.front().in <= kWakeAhead;
}

}  // namespace cgphase
