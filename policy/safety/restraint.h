// How long one resource of one container is left alone after things went wrong: the cool-down,
// doubled by each failed trial, and the quarantine after the third.
#pragma once

#include <optional>

#include "base/clock.h"
#include "policy/safety/guard_rails.h"

namespace cgphase {

class Restraint {
 public:
  // `config` outlives it.
  explicit Restraint(const RailsConfig& config) : config_(config) {}

  // A throttle or memory event: cool down.
  void event(MonotonicTime now);
  // A trial that was reverted or a write that failed; `share` of the cool-down is enough.
  void trial_failed(MonotonicTime now, double share = 1);
  // An OOM or a stall under a limit of ours. A longer one that runs already stays.
  void quarantine(MonotonicTime now, std::chrono::nanoseconds length);

  bool cooling(MonotonicTime now) const { return cool_until_ && now < *cool_until_; }
  bool quarantined(MonotonicTime now) const {
    return quarantine_until_ && now < *quarantine_until_;
  }
  std::optional<MonotonicTime> quarantined_until() const { return quarantine_until_; }

 private:
  void extend(MonotonicTime until);

  const RailsConfig& config_;
  int failures_ = 0;  // each within failure_memory of the one before
  std::optional<MonotonicTime> last_failure_, cool_until_, quarantine_until_;
};

}  // namespace cgphase
