#include "policy/safety/external_change.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <type_traits>
#include <utility>

namespace cgphase {
namespace {

// Copies the knobs of one resource that `from` has.
void copy_knobs(const Limits& from, Resource resource, Limits& to) {
  if (resource == Resource::memory) {
    if (from.memory_max) to.memory_max = from.memory_max;
    if (from.memory_high) to.memory_high = from.memory_high;
    return;
  }
  if (resource == Resource::cpu_weight) {
    if (from.cpu_weight) to.cpu_weight = from.cpu_weight;
    return;
  }
  if (resource == Resource::freeze) {
    if (from.frozen) to.frozen = from.frozen;
    return;
  }
  if (from.cpu_max) to.cpu_max = from.cpu_max;
  if (from.cpu_max_burst) to.cpu_max_burst = from.cpu_max_burst;
}

void extend(std::optional<MonotonicTime>& end, MonotonicTime to) {
  end = end ? std::max(*end, to) : to;
}

}  // namespace

void ExternalChangeDetector::begin(const Limits& original, const Limits& in_force, Bytes page) {
  const auto known = [](auto first, auto second) { return first ? first : second; };
  original_ = in_force;
  original_.cpu_max = known(original.cpu_max, in_force.cpu_max);
  original_.cpu_max_burst = known(original.cpu_max_burst, in_force.cpu_max_burst);
  original_.cpu_weight = known(original.cpu_weight, in_force.cpu_weight);
  original_.memory_max = known(original.memory_max, in_force.memory_max);
  original_.memory_high = known(original.memory_high, in_force.memory_high);
  original_.frozen = known(original.frozen, in_force.frozen);
  expected_ = in_force;
  page_ = page;
}

// A knob that the decision does not change is not recorded, because its value may be foreign.
void ExternalChangeDetector::asked(const Decision& decision) {
  Limits changed = decision.new_limits;
  const auto keep_changed = [&](auto Limits::*knob) {
    if (changed.*knob == decision.old_limits.*knob) (changed.*knob).reset();
  };
  keep_changed(&Limits::cpu_max);
  keep_changed(&Limits::cpu_max_burst);
  keep_changed(&Limits::cpu_weight);
  keep_changed(&Limits::memory_max);
  keep_changed(&Limits::memory_high);
  keep_changed(&Limits::frozen);
  copy_knobs(changed, decision.resource, newest_ask_);
  if (asked_.size() < kRemembered) asked_.push_back(changed);
  else asked_[next_asked_] = changed;
  next_asked_ = (next_asked_ + 1) % kRemembered;
}

// The writer rounds memory up to whole pages of this machine. The safety rules round to 4 KiB,
// because their decisions must be the same on every machine.
template <class Value>
bool ExternalChangeDetector::ours_in_force(const std::optional<Value>& asked,
                               const std::optional<Value>& found) const {
  if constexpr (std::is_same_v<Value, MemoryLimit>) {
    if (asked && found && asked->bytes && found->bytes)
      return *found->bytes >= *asked->bytes &&
             found->bytes->value - asked->bytes->value < page_.value;
  }
  return asked == found;
}

template <class Value>
ExternalChangeDetector::Owner ExternalChangeDetector::judge(std::optional<Value> Limits::*knob,
                                    const Limits& found) const {
  const auto& value = found.*knob;
  if (!value || value == expected_.*knob) return Owner::ours;
  // A file that appears later (a unit gets a property) contains its owner's choice.
  if (!(expected_.*knob)) return Owner::foreign;
  if (value == newest_ask_.*knob) return Owner::ours;
  if (value == original_.*knob) return Owner::reverted;
  const bool once_asked = ours_in_force(newest_ask_.*knob, value) ||
                          std::any_of(asked_.begin(), asked_.end(), [&](const Limits& limits) {
                            return ours_in_force(limits.*knob, value);
                          });
  return once_asked ? Owner::ours : Owner::foreign;
}

// A value that somebody else wrote right after our write is read back, too, but stays foreign.
template <class Value>
void ExternalChangeDetector::drop_foreign(std::optional<Value> Limits::*knob,
                                          Limits& in_force) const {
  if (judge(knob, in_force) == Owner::foreign) (in_force.*knob).reset();
}

void ExternalChangeDetector::written(const Limits& in_force, Resource resource,
                                     MonotonicTime time) {
  // Writes of the fast path are reported late.
  last_write_ = last_write_ ? std::max(*last_write_, time) : time;
  Limits ours = in_force;
  drop_foreign(&Limits::cpu_max, ours);
  drop_foreign(&Limits::cpu_max_burst, ours);
  drop_foreign(&Limits::cpu_weight, ours);
  drop_foreign(&Limits::memory_max, ours);
  drop_foreign(&Limits::memory_high, ours);
  drop_foreign(&Limits::frozen, ours);
  copy_knobs(ours, resource, expected_);
}

void ExternalChangeDetector::forget_freeze() {
  newest_ask_.frozen.reset();
  for (Limits& asked : asked_) asked.frozen.reset();
}

// A former original no longer counts as ours. Whoever sets it again does so on purpose. A lowered
// value of ours may still appear late.
template <class Value>
void ExternalChangeDetector::adopt(std::optional<Value> Limits::*knob, const Limits& found) {
  if (judge(knob, found) == Owner::foreign) {
    const auto former = std::exchange(original_.*knob, found.*knob);
    const auto forget = [&](Limits& asked) {
      if (asked.*knob == former) (asked.*knob).reset();
    };
    forget(newest_ask_);
    std::ranges::for_each(asked_, forget);
  }
  if (found.*knob) expected_.*knob = found.*knob;
}

bool ExternalChangeDetector::near(const SafetyInput& input,
                                  const std::optional<MonotonicTime>& moment) const {
  return moment && std::chrono::abs(input.time - *moment) <= config_.silent_revert;
}

Verdict ExternalChangeDetector::blocked_by(MonotonicTime now) const {
  if (stand_until_ && now < *stand_until_) return Verdict::standing_down;
  if (pause_until_ && now < *pause_until_) return Verdict::silently_reverted;
  return Verdict::allowed;
}

void ExternalChangeDetector::reverted(MonotonicTime now) {
  // One reset may be read in two ticks, knob by knob.
  if (pause_until_ && now < *pause_until_) return;
  constexpr std::chrono::hours kHour{1};
  while (!reverts_.empty() && now - reverts_.front() >= kHour) reverts_.erase(reverts_.begin());
  reverts_.push_back(now);
  extend(pause_until_, now + config_.reapply_pause);
  if (static_cast<int>(reverts_.size()) <= config_.reapplies_per_hour) return;
  reverts_.erase(reverts_.begin());
  extend(pause_until_, now + std::max<std::chrono::nanoseconds>(
                                 kHour - (now - reverts_.front()), config_.stand_down));
}

bool ExternalChangeDetector::unexplained(const SafetyInput& input, Resource resource) const {
  if (!predates_write(input.time)) return false;
  const auto differs = [&](auto Limits::*knob) {
    const auto& found = input.sample->limits.*knob;
    return found && found != expected_.*knob;
  };
  if (resource == Resource::memory)
    return differs(&Limits::memory_max) || differs(&Limits::memory_high);
  return differs(&Limits::cpu_max) || differs(&Limits::cpu_max_burst);
}

bool ExternalChangeDetector::observe(const SafetyInput& input, bool active) {
  changed_ = {};
  if (!begun_) begun_ = input.time;
  // The sample was read before the last write was done, so it is outdated.
  if (predates_write(input.time)) return false;
  const Limits& found = input.sample->limits;
  // Where no class asks for a weight and none is ours, it is nobody's business.
  const bool weighs = input.terms.service_class != ServiceClass::standard ||
                      expected_.cpu_weight != original_.cpu_weight;
  if (!weighs && found.cpu_weight) original_.cpu_weight = expected_.cpu_weight = found.cpu_weight;
  // A container that somebody else freezes or thaws has no other limit than before.
  const bool freezes = expected_.frozen != original_.frozen || newest_ask_.frozen == true;
  if (!freezes && found.frozen) original_.frozen = expected_.frozen = found.frozen;
  const auto unchanged = [&](auto Limits::*knob) {
    return !(found.*knob) || found.*knob == expected_.*knob;
  };
  if (unchanged(&Limits::cpu_max) && unchanged(&Limits::cpu_max_burst) &&
      unchanged(&Limits::memory_max) && unchanged(&Limits::memory_high) &&
      unchanged(&Limits::cpu_weight) && unchanged(&Limits::frozen))
    return false;
  const std::array<Owner, 6> owners = {
      judge(&Limits::cpu_max, found), judge(&Limits::cpu_max_burst, found),
      judge(&Limits::memory_max, found), judge(&Limits::memory_high, found),
      judge(&Limits::cpu_weight, found), judge(&Limits::frozen, found)};
  const auto any = [&](Owner owner) {
    return std::find(owners.begin(), owners.end(), owner) != owners.end();
  };
  adopt(&Limits::cpu_max, found);
  adopt(&Limits::cpu_max_burst, found);
  adopt(&Limits::memory_max, found);
  adopt(&Limits::memory_high, found);
  adopt(&Limits::cpu_weight, found);
  adopt(&Limits::frozen, found);
  const bool foreign = any(Owner::foreign);
  // An engine sets a container's limits just after it creates the cgroup: these are the originals.
  const bool untouched = !last_write_ && newest_ask_ == Limits{};
  if (untouched && input.time - *begun_ < config_.start_up) return false;
  if (!foreign && !(any(Owner::reverted) && active)) return false;
  changed_ = {owners[0] != Owner::ours || owners[1] != Owner::ours,
              owners[2] != Owner::ours || owners[3] != Owner::ours,
              owners[4] != Owner::ours, owners[5] != Owner::ours};
  // An update of several limits may be read in two ticks. An original that comes back right after
  // a foreign value belongs to the same update.
  if (!foreign && near(input, foreign_)) return false;
  if (foreign) foreign_ = input.time;
  const bool reload = near(input, input.reload);
  if (!foreign && (reload || near(input, last_write_))) {
    reverted(input.time);
    return !reload;
  }
  extend(stand_until_, input.time + config_.stand_down);
  return active;
}

}  // namespace cgphase
