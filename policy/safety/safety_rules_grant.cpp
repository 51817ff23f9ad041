// Limits above the original, and memory.max of a container without one: what the host's budget
// grants (policy/budget/host_share.h). They leave the owner's original or more, so they need no
// known phase and no trial. What comes back to the original never goes below need.
#include <algorithm>
#include <cmath>
#include <limits>

#include "policy/safety/safety_rules_impl.h"
#include "policy/safety/limit_arithmetic.h"

namespace cgphase {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

double amount_of(Resource resource, const Limits& limits) {
  if (resource == Resource::cpu) return limits.cpu_cores().value_or(Cores{kNoLimit}).value;
  return limits.memory_max && limits.memory_max->bytes
             ? static_cast<double>(limits.memory_max->bytes->value) : kNoLimit;
}

}  // namespace

bool SafetyRules::Impl::raised_above(Resource resource, const Step& step) const {
  return amount_of(resource, step.limits()) > amount_of(resource, drift_.original());
}

// The least that memory.max may be now. Unknown need gives nothing back.
double SafetyRules::Impl::granted_floor(Resource resource, double found, const Step& step) const {
  if (resource == Resource::cpu) return 0;
  const auto need = senses_->need_bytes();
  if (!need || watch_.stale()) return found;
  const double host = static_cast<double>(step.input.host.memory.value);
  const double limit = found < kNoLimit ? found : host;
  return memory_floor(config_, step.limits(), memory_state(limit, step));
}

std::optional<Decision> SafetyRules::Impl::decide_grant(Resource resource, const Step& step) {
  const MonotonicTime now = step.input.time;
  const bool cpu = resource == Resource::cpu;
  const Limits& limits = step.limits();
  const Limits& original = drift_.original();
  const double found = amount_of(resource, limits), own = amount_of(resource, original);
  const auto& granted = cpu ? step.input.grant.cpu_cores : step.input.grant.memory_bytes;
  const bool file = cpu ? limits.cpu_max && original.cpu_max && own < kNoLimit
                        : limits.memory_max && original.memory_max;
  auto& kept = grants_[static_cast<std::size_t>(resource)];
  if (!granted && found == own) kept.reset();
  if (!file || (!granted && found == own) || (cpu && found < own)) return std::nullopt;
  if (!kept) kept = std::make_unique<GrantState>();
  GrantState& state = *kept;
  if (state.asked != 0 && now - state.asked_at >= kAnswerPatience) state.asked = 0;
  if (!cpu && found > own && step.input.sample->programs.started) state.program_read_it = true;
  if (watch_.emptied() || found == own) state.program_read_it = false;
  const bool may = granted && step.input.mode != Mode::observe && !step.input.hands_off &&
                   !step.rival && drift_.blocked_by(now) == Verdict::allowed;
  const double wanted = may ? (own < kNoLimit ? std::max(own, *granted) : *granted) : own;
  state.wanted.add(now, wanted);
  if (state.asked != 0 || drift_.predates_write(now) || within(state.failed, kRetryPause, now))
    return std::nullopt;

  double target = wanted;
  if (wanted < found) {
    if (may && (!state.wanted.full() || within(state.changed, kMemoryHorizon, now)))
      return std::nullopt;
    if (state.program_read_it) return std::nullopt;
    const double floor = granted_floor(resource, found, step);
    if (!may && floor > own) return std::nullopt;
    target = std::max(may ? state.wanted.high() : own, floor);
    const bool back = target == own;
    if (!(target < found * (back ? 1 : 1 - config_.smallest_change_ratio))) return std::nullopt;
  } else {
    // The guard of a container without a limit follows the needs of all others.
    const double least = own < kNoLimit ? config_.smallest_raise_ratio
                                        : config_.smallest_change_ratio;
    if (!(target > found * (1 + least)) && target != own) return std::nullopt;
  }
  if (target == found) return std::nullopt;
  const Limits changed = target == own ? with_own(limits, original, resource)
                                       : with_granted(limits, resource, target);
  const bool written = step.active() || target == own || !may;
  if (!written && state.advised == target) return std::nullopt;
  Decision decision =
      new_decision(resource, target > found ? Direction::raise : Direction::lower, changed, step);
  decision.reason = may ? Reason::budget : Reason::restored;
  decision.verdict = written ? Verdict::allowed : Verdict::advise_mode;
  decision.statistic = wanted < kNoLimit ? wanted : 0;
  decision.decision_id = step.next_id++;
  if (!written) {
    state.advised = target;
    return decision;
  }
  state.asked = decision.decision_id;
  state.asked_at = now;
  drift_.asked(decision);
  return decision;
}

bool SafetyRules::Impl::grant_written(const Decision& decision, WriteEnd end,
                                      const Limits& in_force, MonotonicTime time) {
  auto& kept = grants_[static_cast<std::size_t>(decision.resource)];
  const bool asked = kept && kept->asked == decision.decision_id;
  // A requested restore from above is reported with no decision of this class before it.
  const Limits& before = decision.old_limits;
  const bool known = decision.resource == Resource::cpu ? before.cpu_max.has_value()
                                                        : before.memory_max.has_value();
  const bool from_above = known && amount_of(decision.resource, before) >
                                       amount_of(decision.resource, drift_.original());
  if (!asked && !from_above) return false;
  if (!kept) kept = std::make_unique<GrantState>();
  GrantState& state = *kept;
  if (asked) state.asked = 0;
  state.failed.reset();
  if (end == WriteEnd::failed) {
    state.failed = time;
    conclude(decision, OutcomeKind::write_failed, "", time);
    return true;
  }
  if (end != WriteEnd::done) {
    conclude(decision, OutcomeKind::overtaken, "restored before it was written", time);
    return true;
  }
  state.changed = time;
  drift_.asked(decision);
  drift_.written(in_force, decision.resource, time);
  return true;
}

}  // namespace cgphase
