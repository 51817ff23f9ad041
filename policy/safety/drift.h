// Who set the limits that are in force: we, something that silently put the original back, or
// somebody with an intent of their own (docs/safety.md, S-08).
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "policy/safety/guard_rails.h"

namespace cgphase {

// Of one container. Knobs are judged one by one; the container stands down as a whole.
class DriftWatch {
 public:
  // `config` outlives it.
  explicit DriftWatch(const RailsConfig& config) : config_(config) {}

  // Before the first observe(). `page`: the writer rounds memory up to whole ones.
  void begin(const Limits& original, const Limits& in_force, Bytes page);
  // `active`: limits are ours to set now; otherwise a return to the original is nobody's act. True
  // where somebody changed what is ours to set: not we, and no reload or update by the engine.
  bool observe(const RailInput& input, bool active);
  // We asked for what this decision changes; then: these limits were read back after our write.
  void asked(const Decision& decision);
  void written(const Limits& in_force, Resource resource, MonotonicTime time);

  const Limits& original() const { return original_; }
  // The last observe() found a limit of it that somebody changed, or a reset put back.
  bool changed(Resource resource) const { return changed_[static_cast<std::size_t>(resource)]; }
  // Why nothing may be lowered: standing_down after somebody's change, silently_reverted in the
  // pause before a re-application; allowed otherwise.
  Verdict holding(MonotonicTime now) const;
  // A sample of then was read before our last write was done: the limits it shows are the past.
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
  bool near(const RailInput& input, const std::optional<MonotonicTime>& moment) const;

  static constexpr std::size_t kRemembered = 8;
  const RailsConfig& config_;
  Bytes page_{kPageBytes};
  Limits original_, expected_;
  Limits newest_ask_;  // per knob; may be in the file before its result is told
  std::vector<Limits> asked_;  // values of ours that may still show up; at most kRemembered
  std::size_t next_asked_ = 0;
  std::array<bool, 2> changed_{};  // by resource
  std::optional<MonotonicTime> begun_, last_write_, stand_until_, pause_until_;
  std::vector<MonotonicTime> reverts_;  // of the last hour, at most reapplies_per_hour + 1
};

}  // namespace cgphase
