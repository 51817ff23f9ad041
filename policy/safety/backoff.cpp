#include "policy/safety/backoff.h"

#include <algorithm>
#include <cmath>

namespace cgphase {
namespace {

constexpr int kMostDoublings = 8;  // 5 min -> 21 h; no cooldown is longer than a quarantine

}  // namespace

void WaitBudget::add(double used_seconds, double waited_seconds, double elapsed_seconds) {
  const double half = std::chrono::duration<double>(kWaitMemory).count();
  const double kept = std::exp2(-elapsed_seconds / half);
  used_seconds_ = used_seconds_ * kept + used_seconds;
  waited_seconds_ = waited_seconds_ * kept + waited_seconds;
}

void Backoff::extend(MonotonicTime until) {
  cool_until_ = cool_until_ ? std::max(*cool_until_, until) : until;
}

void Backoff::event(MonotonicTime now) { extend(now + config_.cool_down); }

void Backoff::trial_failed(MonotonicTime now, double share) {
  if (last_failure_ && now - *last_failure_ > config_.failure_memory) failures_ = 0;
  failures_ += 1;
  last_failure_ = now;
  const std::chrono::duration<double> cool_down = config_.cool_down * share;
  extend(now + std::chrono::duration_cast<std::chrono::nanoseconds>(
                   cool_down * (1 << std::min(failures_, kMostDoublings))));
  if (failures_ < config_.trials_before_quarantine) return;
  quarantine(now, config_.quarantine);
  failures_ = 0;
}

void Backoff::quarantine(MonotonicTime now, std::chrono::nanoseconds length) {
  const MonotonicTime until = now + length;
  quarantine_until_ = quarantine_until_ ? std::max(*quarantine_until_, until) : until;
}

}  // namespace cgphase
