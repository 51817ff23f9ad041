// The rules for cpu.weight.
#include "policy/safety/limit_arithmetic.h"
#include "policy/safety/safety_rules_impl.h"

namespace cgphase {

// The weight shares a processor that several want, and takes nothing from anybody while there is
// enough. So only the mode, the owner and changes by others count, and a change needs no trial.
std::optional<Decision> SafetyRules::Impl::decide_weight(const Step& step) {
  const MonotonicTime now = step.input.time;
  const auto& found = step.limits().cpu_weight;
  const auto& original = drift_.original().cpu_weight;
  if (weight_.asked != 0 && now - weight_.asked_at >= kAnswerPatience) weight_.asked = 0;
  if (!found || !original || weight_.asked != 0 || drift_.predates_write(now) ||
      within(weight_.failed, kRetryPause, now))
    return std::nullopt;
  const bool may = step.input.cpu_lever != CpuLever::quota && step.input.mode != Mode::observe &&
                   !step.input.hands_off && !step.rival &&
                   drift_.blocked_by(now) == Verdict::allowed;
  const std::uint32_t wanted =
      may ? weight_of(step.input.terms.service_class, *original) : *original;
  if (wanted == *found) {
    weight_.advised.reset();
    return std::nullopt;
  }
  const bool back = wanted == *original;
  const bool written = back || step.active();
  if (!written && weight_.advised == wanted) return std::nullopt;
  Decision decision;
  decision.decision_id = step.next_id++;
  decision.time = now;
  decision.container = id_;
  decision.resource = Resource::cpu_weight;
  decision.direction = wanted > *found ? Direction::raise : Direction::lower;
  decision.old_limits = decision.new_limits = step.limits();
  decision.new_limits.cpu_weight = wanted;
  decision.reason = back ? Reason::restored : Reason::service_class;
  decision.verdict = written ? Verdict::allowed : Verdict::advise_mode;
  decision.phase = step.input.phase;
  decision.usage = senses_->cpu_cores().value_or(0);
  decision.evidence = senses_->evidence(*step.input.sample);
  if (!written) {
    weight_.advised = wanted;
    return decision;
  }
  weight_.asked = decision.decision_id;
  weight_.asked_at = now;
  drift_.asked(decision);
  return decision;
}

void SafetyRules::Impl::weight_written(const Decision& decision, WriteEnd end,
                                       const Limits& in_force, MonotonicTime time) {
  if (weight_.asked == decision.decision_id) weight_.asked = 0;
  weight_.failed.reset();
  if (end == WriteEnd::failed) {
    weight_.failed = time;
    return conclude(decision, OutcomeKind::write_failed, "", time);
  }
  if (end != WriteEnd::done)
    return conclude(decision, OutcomeKind::overtaken, "restored before it was written", time);
  drift_.asked(decision);
  drift_.written(in_force, Resource::cpu_weight, time);
}

}  // namespace cgphase
