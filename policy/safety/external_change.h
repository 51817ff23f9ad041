// Detects who set the limits in force: cgphase, a silent reset to the original, or somebody else on
// purpose (docs/safety.md, S-08).
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "policy/safety/safety_rules.h"

namespace cgphase {

// For one container. Knobs are judged separately, but the whole container yields.
class ExternalChangeDetector {
 public:
  // `config` must outlive it.
  explicit ExternalChangeDetector(const SafetyConfig& config) : config_(config) {}

  // Call it before the first observe(). `page`: the writer rounds memory up to whole pages.
  void begin(const Limits& original, const Limits& in_force, Bytes page);
  // `active`: cgphase may set the limits now; otherwise a return to the original has no cause.
  // Returns true if somebody else changed a limit that cgphase may set. A reload or an update by
  // the engine does not count.
  bool observe(const SafetyInput& input, bool active);
  // asked() reports the values that a decision requests; written() reports the limits read back
  // after the write.
  void asked(const Decision& decision);
  // A freeze did not happen, or somebody else ended it. The next one is not ours.
  void forget_freeze();
  // Its lease ended the freeze.
  void thawed() { expected_.frozen = false; }
  void written(const Limits& in_force, Resource resource, MonotonicTime time);

  const Limits& original() const { return original_; }
  // Whether the last observe() found a limit of `resource` that somebody changed or a reset
  // restored.
  bool changed(Resource resource) const { return changed_[static_cast<std::size_t>(resource)]; }
  // Whether the sample has a limit of `resource` that is neither ours nor judged yet: somebody else
  // wrote it beside our last write. The next sample decides.
  bool unexplained(const SafetyInput& input, Resource resource) const;
  // The verdict that blocks a lowering: standing_down after somebody else's change,
  // silently_reverted in the pause before the next attempt. Otherwise allowed.
  Verdict blocked_by(MonotonicTime now) const;
  // A sample of that time was read before the last write was done, so its limits are outdated.
  bool predates_write(MonotonicTime time) const { return last_write_ && time <= *last_write_; }

 private:
  enum class Owner { ours, reverted, foreign };
  template <class Value>
  bool ours_in_force(const std::optional<Value>& asked, const std::optional<Value>& found) const;
  template <class Value>
  Owner judge(std::optional<Value> Limits::*knob, const Limits& found) const;
  template <class Value>
  void drop_foreign(std::optional<Value> Limits::*knob, Limits& in_force) const;
  template <class Value>
  void adopt(std::optional<Value> Limits::*knob, const Limits& found);
  void reverted(MonotonicTime now);
  bool near(const SafetyInput& input, const std::optional<MonotonicTime>& moment) const;

  static constexpr std::size_t kRemembered = 8;
  const SafetyConfig& config_;
  Bytes page_{kPageBytes};
  Limits original_, expected_;
  Limits newest_ask_;  // per knob; may be in the file before its result is reported
  std::vector<Limits> asked_;  // our values that may still appear; at most kRemembered
  std::size_t next_asked_ = 0;
  std::array<bool, kResourceCount> changed_{};  // by resource
  std::optional<MonotonicTime> begun_, last_write_, stand_until_, pause_until_;
  std::optional<MonotonicTime> foreign_;  // the last change by somebody else
  std::vector<MonotonicTime> reverts_;  // in the last hour, at most reapplies_per_hour + 1
};

}  // namespace cgphase
