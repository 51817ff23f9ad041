// How long one resource of one container is not lowered after a failure: a cooldown, doubled by
// each failed trial, and a quarantine after the third. Throttling costs little and is mended at
// once, so what it costs is bounded instead.
#pragma once

#include <chrono>
#include <optional>

#include "base/clock.h"
#include "policy/safety/safety_rules.h"

namespace cgphase {

// The CPU time that lowered quotas made a container wait, against a share of the CPU time that it
// used. Half of both is forgotten in kWaitMemory.
inline constexpr double kWaitShare = 0.01;
inline constexpr std::chrono::minutes kWaitMemory{10};

class WaitBudget {
 public:
  void add(double used_seconds, double waited_seconds, double elapsed_seconds);
  bool spent() const { return waited_seconds_ > kWaitShare * used_seconds_; }

 private:
  double used_seconds_ = 0, waited_seconds_ = 0;
};

class Backoff {
 public:
  // `config` must outlive it.
  explicit Backoff(const SafetyConfig& config) : config_(config) {}

  // A throttling or memory event starts a cooldown.
  void event(MonotonicTime now);
  // A trial was reverted or a write failed. The cooldown is multiplied by `share`.
  void trial_failed(MonotonicTime now, double share = 1);
  // An OOM or a stall under a limit of ours. A longer running quarantine stays.
  void quarantine(MonotonicTime now, std::chrono::nanoseconds length);

  bool cooling(MonotonicTime now) const { return cool_until_ && now < *cool_until_; }
  bool quarantined(MonotonicTime now) const {
    return quarantine_until_ && now < *quarantine_until_;
  }
  std::optional<MonotonicTime> quarantined_until() const { return quarantine_until_; }

 private:
  void extend(MonotonicTime until);

  const SafetyConfig& config_;
  int failures_ = 0;  // each within failure_memory of the previous one
  std::optional<MonotonicTime> last_failure_, cool_until_, quarantine_until_;
};

}  // namespace cgphase
