// Limits above the original, and memory.max of a container without one: what the host's budget
// grants (policy/budget/host_share.h). They need no known phase and no trial: the first leaves more
// than the owner's original, the second is there to end a leak. Neither goes below need.
#include <algorithm>
#include <cmath>
#include <limits>

#include "policy/safety/safety_rules_impl.h"
#include "policy/safety/limit_arithmetic.h"

namespace cgphase {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

constexpr double kCacheStep = 0.5;  // share of the cold cache that one step down may drop
constexpr int kSlowRetry = 6;        // times kRetryPause, after a failed step down

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
double SafetyRules::Impl::granted_floor(Resource resource, double found, bool gently,
                                        const Step& step) const {
  if (resource == Resource::cpu) return 0;
  const auto need = senses_->need_bytes();
  if (!need || watch_.stale()) return found;
  const double host = static_cast<double>(step.input.host.memory.value);
  const double limit = found < kNoLimit ? found : host;
  const MemoryState state = memory_state(limit, step);
  const double kept = state.current_bytes - kCacheStep * state.cold_cache_bytes;
  return std::max(memory_floor(config_, step.limits(), state), gently ? kept : 0);
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
  follow_readers(state, !cpu && found != own, step);
  const bool may = granted && step.input.mode != Mode::observe && !step.input.hands_off &&
                   !step.rival && drift_.blocked_by(now) == Verdict::allowed;
  const double wanted = may ? (own < kNoLimit ? std::max(own, *granted) : *granted) : own;
  state.wanted.add(now, wanted);
  if (state.asked != 0 || drift_.predates_write(now)) return std::nullopt;

  double target = wanted;
  if (wanted < found) {
    // Above what the owner agrees to now, nothing waits but need.
    const double agreed = agreed_amount(resource, own, step);
    const bool due = !may || found > agreed * (1 + config_.smallest_raise_ratio);
    if (!due && (!state.wanted.full() || within(state.changed, kMemoryHorizon, now)))
      return std::nullopt;
    if (!state.readers.empty() || within(state.failed_lowering, kSlowRetry * kRetryPause, now))
      return std::nullopt;
    const double floor = granted_floor(resource, found, !due, step);
    if (!may && floor > own) return std::nullopt;
    target = std::max(due ? std::min(wanted, agreed) : state.wanted.high(), floor);
    const bool back = target == own || due;
    if (!(target < found * (back ? 1 : 1 - config_.smallest_change_ratio))) return std::nullopt;
  } else {
    if (within(state.failed_raise, kRetryPause, now)) return std::nullopt;
    // The guard of a container without a limit follows the needs of all others.
    const double least = own < kNoLimit ? config_.smallest_raise_ratio
                                        : config_.smallest_change_ratio;
    if (!(target > found * (1 + least)) && target != own) return std::nullopt;
  }
  if (target == found) return std::nullopt;
  const Limits changed = target == own ? with_own(limits, original, resource)
                                       : with_granted(limits, resource, target);
  const bool written = step.active() || target == own || !may;
  const bool told = state.advised && std::abs(*state.advised - target) <=
                                         config_.smallest_change_ratio * target;
  if (!written && told) return std::nullopt;
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

// Programs that started while another memory.max than the original was in force may have read it.
// They run until the container has no more processes than before.
void SafetyRules::Impl::follow_readers(GrantState& state, bool other, const Step& step) const {
  const Counter count = step.input.sample->pids_current;
  if (!other || watch_.emptied()) return state.readers.clear();
  std::erase_if(state.readers, [&](const Counter& before) { return count && count <= before; });
  if (!step.input.sample->programs.started) return;
  const Counter before = step.input.previous ? step.input.previous->pids_current : Counter{};
  if (state.readers.size() < kMostReaders) state.readers.push_back(before ? before : count);
}

double SafetyRules::Impl::agreed_amount(Resource resource, double own, const Step& step) const {
  const Terms& terms = step.input.terms;
  if (resource == Resource::cpu)
    return std::max(own, terms.cpu_max.value_or(Cores{own}).value);
  const double most = terms.memory_max ? static_cast<double>(terms.memory_max->value) : own;
  return own < kNoLimit ? std::max(own, most) : kNoLimit;
}

bool SafetyRules::Impl::grant_written(const Decision& decision, WriteEnd end,
                                      const Limits& in_force, MonotonicTime time) {
  auto& kept = grants_[static_cast<std::size_t>(decision.resource)];
  const bool asked = kept && kept->asked == decision.decision_id;
  // A requested restore from above is reported with no decision of this class before it.
  const Limits& before = decision.old_limits;
  const Limits& after = decision.new_limits;
  const bool changed = decision.resource == Resource::cpu
                           ? before.cpu_max && before.cpu_max != after.cpu_max
                           : before.memory_max && before.memory_max != after.memory_max;
  const bool from_above = changed && amount_of(decision.resource, before) >
                                       amount_of(decision.resource, drift_.original());
  if (!asked && !from_above) return false;
  if (!kept) kept = std::make_unique<GrantState>();
  GrantState& state = *kept;
  if (asked) state.asked = 0;
  if (end == WriteEnd::failed) {
    (decision.direction == Direction::raise ? state.failed_raise : state.failed_lowering) = time;
    conclude(decision, OutcomeKind::write_failed, "", time);
    return true;
  }
  if (end != WriteEnd::done) {
    conclude(decision, OutcomeKind::overtaken, "restored before it was written", time);
    return true;
  }
  state.failed_raise.reset();
  state.failed_lowering.reset();
  state.changed = time;
  drift_.asked(decision);
  drift_.written(in_force, decision.resource, time);
  return true;
}

}  // namespace cgphase
