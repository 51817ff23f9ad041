// The rules for cgroup.freeze: a container of class batch stands still for a while, where its owner
// consents and the host is short of memory (core/shortage.h chooses whom). Nothing is killed.
#include "policy/safety/safety_rules_impl.h"

namespace cgphase {

// A container that somebody else froze has `frozen` as its original.
bool SafetyRules::Impl::frozen_by_us(const Step& step) const {
  return step.limits().frozen == true && drift_.original().frozen == false;
}

std::optional<std::chrono::seconds> SafetyRules::Impl::freeze_consent(const Step& step) const {
  const bool may = step.input.terms.service_class == ServiceClass::batch &&
                   step.input.mode != Mode::observe && !step.input.hands_off && !step.rival &&
                   drift_.blocked_by(step.input.time) == Verdict::allowed;
  return may ? step.input.terms.freeze_longest : std::nullopt;
}

// Of a freeze by an earlier daemon the beginning is unknown, so it ends now.
std::optional<Reason> SafetyRules::Impl::why_thaw(const Step& step) const {
  const auto longest = freeze_consent(step);
  if (!longest || !step.active() || !freeze_->since) return Reason::restored;
  if (step.input.time - *freeze_->since >= *longest) return Reason::freeze_over;
  if (!step.input.shortage.freeze) return Reason::memory_fits;
  return std::nullopt;
}

// The container runs as long as it was frozen, so that it never starves.
void SafetyRules::Impl::thawed(FreezeState& state, MonotonicTime time) {
  if (state.since) state.rest_until = time + (time - *state.since);
  state.since.reset();
  state.lease_ends.reset();
}

// The companion thaws at the end of the lease if this daemon does not. Nobody else did.
void SafetyRules::Impl::take_late_thaw(const Step& step) {
  const bool over = freeze_ && freeze_->lease_ends && step.input.time >= *freeze_->lease_ends;
  if (over && step.limits().frozen == false) drift_.thawed();
}

std::optional<Decision> SafetyRules::Impl::decide_freeze(const Step& step) {
  const MonotonicTime now = step.input.time;
  const bool frozen = frozen_by_us(step);
  const auto longest = freeze_consent(step);
  may_freeze_ = false;
  if (!freeze_ && !longest && !frozen) return std::nullopt;
  if (!freeze_) freeze_ = std::make_unique<FreezeState>();
  FreezeState& state = *freeze_;
  if (state.asked != 0 && now - state.asked_at >= kAnswerPatience) state.asked = 0;
  if (step.input.shortage.bytes <= 0) state.advised = false;
  if (state.asked != 0 || drift_.predates_write(now) || within(state.failed, kRetryPause, now))
    return std::nullopt;
  std::optional<Reason> reason;
  if (frozen) {
    reason = why_thaw(step);
  } else {
    if (state.since) drift_.forget_freeze();
    thawed(state, now);  // by somebody else
    may_freeze_ = longest && step.limits().frozen == false && !watch_.stale() &&
                  now >= state.rest_until && !state.advised;
    if (may_freeze_ && step.input.shortage.freeze) reason = Reason::memory_short;
  }
  if (!reason) return std::nullopt;
  Limits changed = step.limits();
  changed.frozen = !frozen;
  Decision decision = new_decision(Resource::freeze, frozen ? Direction::raise : Direction::lower,
                                   changed, step);
  decision.decision_id = step.next_id++;
  decision.reason = *reason;
  decision.statistic = step.input.shortage.bytes;
  if (longest) decision.evidence[Fact::freeze_seconds] = static_cast<double>(longest->count());
  may_freeze_ = false;
  if (!frozen && !step.active()) {
    decision.verdict = Verdict::advise_mode;
    state.advised = true;
    return decision;
  }
  state.asked = decision.decision_id;
  state.asked_at = now;
  drift_.asked(decision);
  return decision;
}

// Also of what the fast path thawed, and of a requested restore.
void SafetyRules::Impl::freeze_written(const Decision& decision, WriteEnd end,
                                       const Limits& in_force, MonotonicTime time) {
  if (!freeze_) freeze_ = std::make_unique<FreezeState>();
  FreezeState& state = *freeze_;
  if (state.asked == decision.decision_id) state.asked = 0;
  state.failed.reset();
  if (end != WriteEnd::done && in_force.frozen == false) drift_.forget_freeze();
  // After a failure it may stand still all the same.
  if (decision.direction == Direction::lower && in_force.frozen != false)
    state.since = decision.time, state.lease_ends = decision.deadline();
  if (end == WriteEnd::failed) {
    state.failed = time;
    return conclude(decision, OutcomeKind::write_failed, "", time);
  }
  if (end != WriteEnd::done)
    return conclude(decision, OutcomeKind::overtaken, "restored before it was written", time);
  if (decision.direction == Direction::raise) thawed(state, time);
  drift_.asked(decision);
  drift_.written(in_force, Resource::freeze, time);
}

}  // namespace cgphase
