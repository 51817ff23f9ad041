#include "policy/safety/safety_rules.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/check.h"
#include "policy/safety/safety_rules_impl.h"
#include "policy/safety/limit_arithmetic.h"

namespace cgphase {
namespace {

// A raise without an answer is requested again; a lowering without one is given up.
constexpr std::chrono::seconds kRaisePatience{2};
constexpr std::chrono::seconds kLowerPatience{60};
constexpr std::chrono::seconds kFirstRaisePause{1}, kLongestRaisePause{10};  // after a failed raise
constexpr std::size_t kMostOutcomes = 64;      // not taken yet; the oldest are dropped
constexpr std::array<Resource, 2> kResources = {Resource::cpu, Resource::memory};

// For this long after a raise by the fast path, events still count against the previous limit.
constexpr std::chrono::seconds kGuardBlame{3};
// Share of the cooldown after a trial in which a soft limit was too low, or tasks were throttled.
constexpr double kSoftShare = 0.2;

}  // namespace

std::vector<Decision> SafetyRules::Impl::step(const SafetyInput& input,
                                              const Recommendation& recommendation,
                                              HostBudget& budget, std::uint64_t& next_id) {
  CHECK_INVARIANT(input.sample != nullptr);
  Step step{input, recommendation, budget, next_id, rival_.blocked_by(input.time)};
  if (!std::exchange(begun_, true)) begin(step);
  take_quarantines(step);
  wants_gpu_look_ = may_freeze_ = false;
  model_step_seconds_ = input.model_step_seconds;
  sampling_seconds_ = input.sampling_seconds;
  watch_.add(input);
  take_late_thaw(step);
  if (drift_.observe(input, step.active())) rival_.changed(input.time);
  step.rival = rival_.blocked_by(input.time);
  if (only_watched(step)) {
    only_watch(step);
    return {};
  }
  sense(step);
  follow_trials(step);
  latch_restores(step);
  std::vector<Decision> decisions;
  for (const Resource resource : kResources)
    if (auto decision = decide(resource, step)) decisions.push_back(std::move(*decision));
  if (auto decision = decide_weight(step)) decisions.push_back(std::move(*decision));
  if (auto decision = decide_freeze(step)) decisions.push_back(std::move(*decision));
  if (!drift_.predates_write(input.time))
    oom_.step(!is_original(step.limits(), drift_.original(), Resource::memory),
              within(state_of(Resource::memory).last_fast_path_raise, kGuardBlame, input.time));
  fast_path_saw_event_ = false;
  return decisions;
}

// If the original was passed in, a lower limit in force is from an earlier daemon. It is in no
// trial.
void SafetyRules::Impl::begin(const Step& step) {
  drift_.begin(step.input.original, step.limits(), step.input.host.page);
  for (const Resource resource : kResources) {
    if (unlowered(resource, step)) continue;
    state_of(resource).last_change = step.input.time;
    state_of(resource).restore = Reason::restored;
  }
}

// If a container was lowered before its quarantine was known, its original is restored.
void SafetyRules::Impl::take_quarantines(const Step& step) {
  for (const Resource resource : kResources) {
    const auto left = step.input.quarantine_left[static_cast<std::size_t>(resource)];
    if (left.count() <= 0) continue;
    state_of(resource).backoff.quarantine(step.input.time, left);
    if (!unlowered(resource, step)) state_of(resource).restore = Reason::restored;
  }
}

bool SafetyRules::Impl::only_watched(const Step& step) const {
  if (step.input.mode != Mode::observe) return false;
  return all_original(step.limits(), drift_.original()) &&
         std::ranges::none_of(kResources, [&](Resource resource) {
           return state_of(resource).last_change.has_value();
         });
}

void SafetyRules::Impl::only_watch(const Step& step) {
  if (senses_) {
    senses_.reset();
    baselines_ = {};
  }
  watched_ = true;
  if (watch_.max_event() || watch_.oom_event())
    state_of(Resource::memory).backoff.event(step.input.time);
  for (ResourceState& one : states_) one.blocked_by = Verdict::observe_mode;
  fast_path_saw_event_ = false;
}

void SafetyRules::Impl::sense(const Step& step) {
  if (!senses_) {
    senses_ = std::make_unique<UsageTracker>(config_);
    catching_up_ = watched_;
  }
  senses_->add(step.input, watch_.lost());
  const bool lowered_now = !unlowered(Resource::cpu, step);
  const bool ours = std::exchange(quota_was_lowered_, lowered_now) || lowered_now;
  const double waited = ours ? senses_->throttled_seconds() : 0;
  if (waited > 0) last_wait_ = step.input.time;
  wait_.add(senses_->cpu_cores().value_or(0) * step.input.interval_seconds, waited,
            step.input.interval_seconds);
}

// A trial ends once. All other raises are requested again while their cause lasts. If this one
// write fails, the original is therefore requested until it is in force.
void SafetyRules::Impl::keep_wanted(ResourceState& state, Reason reason) {
  if (reason == Reason::trial_failed && !state.restore) state.restore = reason;
}

void SafetyRules::Impl::put_off(ResourceState& state, double target, MonotonicTime time) {
  if (!state.failed) state.failed = std::make_unique<FailedRaise>();
  FailedRaise& failed = *state.failed;
  failed.pause = std::clamp(2 * failed.pause, kFirstRaisePause, kLongestRaisePause);
  failed.until = time + failed.pause;
  failed.target = target;
}

void SafetyRules::Impl::forget_unanswered(ResourceState& state, MonotonicTime now) {
  if (state.raising && now - state.raising->decision.time >= kRaisePatience) {
    keep_wanted(state, state.raising->decision.reason);
    state.raising.reset();
  }
  if (state.lowering && now - state.lowering->decision.time >= kLowerPatience)
    state.lowering.reset();
}

void SafetyRules::Impl::follow_trials(const Step& step) {
  const MonotonicTime now = step.input.time;
  // A sample older than the write shows earlier limits. It neither ends a trial nor counts as a
  // measure.
  const bool older = drift_.predates_write(now);
  bool in_trial = false;
  for (const Resource resource : kResources) {
    ResourceState& one = state_of(resource);
    forget_unanswered(one, now);
    const bool gone = !older && unlowered(resource, step);
    if (one.trial && (gone || drift_.changed(resource))) {
      conclude(one.trial->decision(), OutcomeKind::overtaken, "another writer changed the limit",
               now);
      one.trial.reset();
    }
    in_trial = in_trial || one.trial;
    if (one.trial && !older && senses_->cpu_cores())
      one.trial->add(step.input.phase, senses_->measures());
  }
  if (!in_trial && senses_->cpu_cores()) baselines_.add(step.input.phase, senses_->measures());
}

// Whether a limit below the original is in force or pending, or may be, because of us. A limit that
// must be restored is not forgotten when the sample is older than the write.
bool SafetyRules::Impl::lowered(Resource resource, const Step& step) const {
  return state_of(resource).lowering || drift_.predates_write(step.input.time) ||
         !unlowered(resource, step);
}

bool SafetyRules::Impl::unlowered(Resource resource, const Step& step) const {
  return is_original(step.limits(), drift_.original(), resource) ||
         (resource == Resource::cpu && raised_above(resource, step));
}

void SafetyRules::Impl::want_restore(Resource resource, Reason reason, const Step& step) {
  if (lowered(resource, step)) state_of(resource).restore = reason;
}

void SafetyRules::Impl::latch_memory_trouble(const Step& step) {
  ResourceState& memory = state_of(Resource::memory);
  const MonotonicTime now = step.input.time;
  if (watch_.max_event() || watch_.oom_event()) {
    memory.backoff.event(now);
    // The fast path may have restored between the event and this step. The limit was ours
    // nevertheless.
    const bool ours = lowered(Resource::memory, step) ||
                      within(memory.last_fast_path_raise, kGuardBlame, now);
    if (watch_.oom_event() && ours) {
      memory.backoff.quarantine(now, config_.quarantine);
      note_oom(watch_.limit_met());
    }
    want_restore(Resource::memory, Reason::memory_event, step);
  } else if (senses_->stalled() && lowered(Resource::memory, step)) {
    memory.backoff.event(now);
    want_restore(Resource::memory, Reason::pressure, step);
  }
}

void SafetyRules::Impl::note_oom(bool limit_met) {
  const double measured = senses_ ? senses_->need_peak_bytes() : 0;
  const auto& hard = drift_.original().memory_max;
  const double limit = hard && hard->bytes ? static_cast<double>(hard->bytes->value) : 0;
  if (const auto seen = oom_.seen(measured, limit_met, limit)) oom_seen_ = seen;
}

// If a container ends right after the fast path saw an event, the event most likely ended it. An
// OOM kill removes the cgroup before its counters are read. After a sudden rise the earlier
// measurements are too low, so the limit counts as need.
void SafetyRules::Impl::vanished(MonotonicTime time) {
  if (fast_path_saw_event_) {
    state_of(Resource::memory).backoff.quarantine(time, config_.quarantine);
    note_oom(true);
  }
  for (ResourceState& one : states_)
    if (one.trial)
      conclude(one.trial->decision(), OutcomeKind::overtaken, "the container is gone", time);
}

void SafetyRules::Impl::forget_phases() {
  baselines_ = {};
  if (senses_) senses_->forget_phases();
  for (ResourceState& one : states_)
    if (one.trial) one.trial->forget_phase();
}

void SafetyRules::Impl::latch_restores(const Step& step) {
  for (const Resource resource : kResources) {
    ResourceState& one = state_of(resource);
    if (!lowered(resource, step)) {
      one.restore.reset();
      one.failed.reset();
    }
    const bool ours = one.last_change.has_value();
    const bool restarted = watch_.emptied() || watch_.started();
    if (ours && (restarted || !step.active()))
      want_restore(resource, step.rival ? Reason::another_manager : Reason::restored, step);
    else if (ours && drift_.changed(resource) &&
             drift_.blocked_by(step.input.time) == Verdict::standing_down)
      want_restore(resource, Reason::another_manager, step);  // after a change of memory.max,
                                                              // memory.high is still ours
    else if (ours && gate_owner(resource, step) == Verdict::gpu_container)
      want_restore(resource, Reason::gpu_seen, step);
    else if (ours && gate_owner(resource, step) == Verdict::shared_by_weight)
      want_restore(resource, Reason::restored, step);
    else if (ours && gate_owner(resource, step) == Verdict::reads_limits)
      want_restore(resource, Reason::reads_limits, step);
    else if (ours && step.input.sample->programs.started)
      want_restore(resource, Reason::program_started, step);
  }
  latch_memory_trouble(step);
}

std::optional<Decision> SafetyRules::Impl::decide(Resource resource, const Step& step) {
  // A restore now would overwrite a value of the owner's with an outdated original.
  if (drift_.unexplained(step.input, resource)) return std::nullopt;
  if (const auto found = find_raise(resource, step)) return raise(resource, *found, step);
  if (auto granted = decide_grant(resource, step)) return granted;
  return lower(resource, step);
}

std::optional<SafetyRules::Impl::Raise> SafetyRules::Impl::find_raise(Resource resource,
                                                                            const Step& step) {
  const Limits& limits = step.limits();
  const bool cpu = resource == Resource::cpu;
  const auto in_force = cpu ? cpu_in_force(limits, step.input.host)
                            : memory_in_force(limits, step.input.host);
  ResourceState& one = state_of(resource);
  auto trial_end = end_trial(resource, step);
  if (!in_force || unlowered(resource, step)) return std::nullopt;
  std::optional<Raise> found;
  if (one.restore) {
    found = Raise{with_original(limits, drift_.original(), resource), 0, *one.restore};
  } else if (!step.active()) {
    return std::nullopt;
  } else if (trial_end) {
    found = std::move(trial_end);
  } else {
    found = cpu ? cpu_raise(*in_force, step) : memory_raise(*in_force, step);
  }
  if (!found) return std::nullopt;
  found->target = (cpu ? cpu_in_force(found->limits, step.input.host)
                       : memory_in_force(found->limits, step.input.host))
                      .value_or(0);
  if (found->limits == limits) return std::nullopt;
  if (one.raising && one.raising->target >= found->target) return std::nullopt;
  if (one.failed && step.input.time < one.failed->until && one.failed->target >= found->target) {
    keep_wanted(one, found->reason);
    return std::nullopt;
  }
  return found;
}

// At the end of a trial its lowering is accepted or reverted.
std::optional<SafetyRules::Impl::Raise> SafetyRules::Impl::end_trial(Resource resource,
                                                                           const Step& step) {
  ResourceState& one = state_of(resource);
  const MonotonicTime now = step.input.time;
  if (!one.trial || one.restore || !one.trial->over(now)) return std::nullopt;
  const Decision decision = one.trial->decision();
  const bool measured = one.trial->measured();
  auto judgement = one.trial->judge(baselines_, config_);
  one.trial.reset();
  if (measured && !judgement.worse) {
    conclude(decision, OutcomeKind::trial_passed, std::move(judgement.detail), now);
    return std::nullopt;
  }
  if (measured) one.backoff.trial_failed(now, resource == Resource::memory ? kSoftShare : 1);
  conclude(decision, OutcomeKind::trial_reverted,
           measured ? std::move(judgement.detail) : "no measurements", now);
  return Raise{with_original(step.limits(), decision.old_limits, resource), 0,
               Reason::trial_failed};
}

std::optional<SafetyRules::Impl::Raise> SafetyRules::Impl::cpu_raise(double in_force,
                                                                           const Step& step) {
  ResourceState& cpu = state_of(Resource::cpu);
  const MonotonicTime now = step.input.time;
  const double usage = senses_->cpu_cores().value_or(0);
  const double wanted = step.recommendation.cpu.value_or(Cores{0}).value;
  const bool throttled = senses_->throttled() && !cpu.raising;
  const bool at_risk = usage > config_.at_risk_ratio * in_force && !cpu.raising;
  const bool recommended = wanted > in_force * (1 + config_.smallest_raise_ratio);
  if (!throttled && !at_risk && !recommended) return std::nullopt;
  double cores = recommended ? wanted : in_force;
  if (throttled || at_risk) cores = std::max(cores, in_force * config_.cpu_raise_factor);
  Reason reason = throttled ? Reason::throttled : at_risk ? Reason::headroom
                                                  : step.recommendation.reason_for(Resource::cpu);
  Raise raise{with_cpu(step.limits(), drift_.original(), step.input.host, cores,
                       step.recommendation.cpu_pinned),
              0, reason};
  if (!throttled) return raise;
  if (within(cpu.last_cpu_raise, config_.cpu_raises_window, now))
    raise.limits = with_original(step.limits(), drift_.original(), Resource::cpu);
  return raise;
}

std::optional<SafetyRules::Impl::Raise> SafetyRules::Impl::memory_raise(double in_force,
                                                                              const Step& step) {
  const double need = senses_->need_bytes().value_or(0);
  const double soon = std::chrono::duration<double>(config_.at_risk_growth).count();
  const double growth = std::max(senses_->need_bytes_per_sec(), 0.0) * soon;
  if (need > config_.at_risk_ratio * in_force || need + growth >= in_force)
    return Raise{with_original(step.limits(), drift_.original(), Resource::memory), 0,
                 Reason::headroom};
  const double recommended =
      static_cast<double>(step.recommendation.memory.value_or(Bytes{0}).value);
  const double wanted = std::max(recommended, step.input.oom_floor_bytes);
  if (!(wanted > in_force * (1 + config_.smallest_raise_ratio))) return std::nullopt;
  return Raise{with_memory(step.limits(), drift_.original(), step.input.host, wanted,
                           step.recommendation.memory_pinned),
               0,
               wanted > recommended ? Reason::oom_remembered
                                    : step.recommendation.reason_for(Resource::memory)};
}

Decision SafetyRules::Impl::raise(Resource resource, const Raise& raise, const Step& step) {
  ResourceState& one = state_of(resource);
  const MonotonicTime now = step.input.time;
  Decision decision = new_decision(resource, Direction::raise, raise.limits, step);
  decision.reason = raise.reason;
  decision.decision_id = step.next_id++;
  const bool harmful = raise.reason == Reason::throttled || raise.reason == Reason::pressure ||
                       raise.reason == Reason::memory_event;
  if (one.trial) {
    if (harmful) one.backoff.trial_failed(now, resource == Resource::cpu ? kSoftShare : 1);
    conclude(one.trial->decision(),
             harmful ? OutcomeKind::trial_reverted : OutcomeKind::overtaken,
             std::string("raised: ") + to_string(raise.reason), now);
    one.trial.reset();
  }
  // Only now: a postponed raise has not answered the throttling.
  if (raise.reason == Reason::throttled) {
    one.last_cpu_raise = now;
    senses_->forget_throttling(now);
  }
  one.raising = std::make_unique<Pending>(decision, raise.target);
  one.last_change = now;
  one.refused.reset();
  const Verdict after_others = drift_.blocked_by(now);
  one.blocked_by = after_others == Verdict::allowed ? Verdict::rate_limited : after_others;
  drift_.asked(decision);
  return decision;
}

Decision SafetyRules::Impl::new_decision(Resource resource, Direction direction,
                                            const Limits& limits, const Step& step) const {
  const bool cpu = resource == Resource::cpu;
  Decision decision;
  decision.time = step.input.time;
  decision.container = id_;
  decision.resource = resource;
  decision.direction = direction;
  decision.old_limits = step.limits();
  decision.new_limits = limits;
  decision.phase = step.input.phase;
  decision.usage = (cpu ? senses_->cpu_cores() : senses_->need_bytes()).value_or(0);
  decision.statistic =
      cpu ? step.recommendation.cpu.value_or(Cores{}).value
          : static_cast<double>(step.recommendation.memory.value_or(Bytes{}).value);
  decision.sample_count =
      cpu ? step.recommendation.cpu_sample_count : step.recommendation.memory_sample_count;
  decision.evidence = senses_->evidence(*step.input.sample);
  decision.evidence[Fact::earlier_runs] = step.recommendation.earlier_runs_for(resource);
  return decision;
}

void SafetyRules::Impl::conclude(const Decision& decision, OutcomeKind kind,
                                    std::string detail, MonotonicTime time) {
  if (outcomes_.size() >= kMostOutcomes) outcomes_.erase(outcomes_.begin());
  outcomes_.push_back({decision.decision_id, time, id_, kind, std::move(detail)});
}

// A raise that this class did not request. If it answers harm, the lowering before it is blamed, as
// if this class had detected the harm. A requested restore blames nothing.
void SafetyRules::Impl::raised_by_fast_path(const Decision& decision, MonotonicTime time) {
  ResourceState& one = state_of(decision.resource);
  const bool harmful = decision.reason == Reason::throttled ||
                       decision.reason == Reason::pressure ||
                       decision.reason == Reason::memory_event ||
                       decision.reason == Reason::stalled;
  one.last_change = one.last_fast_path_raise = time;
  if (decision.reason == Reason::program_started) watch_.program_started(time);
  if (decision.reason == Reason::memory_event) fast_path_saw_event_ = true;
  if (decision.reason == Reason::throttled) {
    one.last_cpu_raise = time;
    if (senses_) senses_->forget_throttling(time);
  }
  if (harmful && decision.resource == Resource::memory) one.backoff.event(time);
  if (decision.reason == Reason::stalled)
    one.backoff.quarantine(time, config_.stall_quarantine);
  if (!one.trial) return;
  if (harmful) one.backoff.trial_failed(time, decision.resource == Resource::cpu ? kSoftShare : 1);
  const bool put_back = decision.reason == Reason::restored ||
                        decision.reason == Reason::another_manager ||
                        decision.reason == Reason::program_started ||
                        decision.reason == Reason::silence;
  conclude(one.trial->decision(), harmful ? OutcomeKind::trial_reverted : OutcomeKind::overtaken,
           std::string(put_back ? "put back: " : "raised by the fast path: ") +
               to_string(decision.reason),
           time);
  one.trial.reset();
}

void SafetyRules::Impl::written(const Decision& decision, WriteEnd end,
                                   const Limits& in_force, MonotonicTime time) {
  if (decision.resource == Resource::cpu_weight)
    return weight_written(decision, end, in_force, time);
  if (decision.resource == Resource::freeze) return freeze_written(decision, end, in_force, time);
  if (grant_written(decision, end, in_force, time)) return;
  ResourceState& one = state_of(decision.resource);
  const bool lowering = decision.direction == Direction::lower;
  auto& pending = lowering ? one.lowering : one.raising;
  const bool asked = pending && pending->decision.decision_id == decision.decision_id;
  if (end == WriteEnd::failed && !lowering) put_off(one, asked ? pending->target : 0, time);
  if (end == WriteEnd::done && !lowering) one.failed.reset();
  if (asked) pending.reset();
  if ((end == WriteEnd::done || end == WriteEnd::program_started) &&
      decision.resource == Resource::memory)
    oom_.written(!is_original(in_force, drift_.original(), Resource::memory));
  if (end == WriteEnd::program_started) {
    // The value written, or the one in force before, has been reset to the original.
    Decision back = decision;
    back.reason = Reason::program_started;
    raised_by_fast_path(back, time);
    drift_.written(in_force, decision.resource, time);
    return conclude(decision, OutcomeKind::overtaken, "a program started before it was written",
                    time);
  }
  if (end == WriteEnd::overtaken)
    return conclude(decision, OutcomeKind::overtaken, "raised before it was written", time);
  if (end == WriteEnd::failed) {
    if (lowering) one.backoff.trial_failed(time);
    else keep_wanted(one, decision.reason);
    return conclude(decision, OutcomeKind::write_failed, "", time);
  }
  if (!lowering && !asked) raised_by_fast_path(decision, time);
  drift_.asked(decision);
  drift_.written(in_force, decision.resource, time);
  if (!lowering) return;
  rival_.lowered();
  if (one.raising || one.restore)
    return conclude(decision, OutcomeKind::overtaken, "raised before it was written", time);
  const std::chrono::duration<double> least(
      std::max(model_step_seconds_ * config_.trial_model_steps,
               sampling_seconds_ * static_cast<double>(Trial::kFewestTicks)));
  const auto length = std::max<std::chrono::nanoseconds>(
      config_.trial, std::chrono::duration_cast<std::chrono::nanoseconds>(least));
  one.trial = std::make_unique<Trial>(decision, time, length);
}

SafetyRules::SafetyRules(const SafetyConfig& config, CgroupId id)
    : SafetyRules(std::make_shared<const SafetyConfig>(config), id) {}
SafetyRules::SafetyRules(std::shared_ptr<const SafetyConfig> config, CgroupId id)
    : impl_(std::make_unique<Impl>(std::move(config), id)) {}
SafetyRules::SafetyRules(SafetyRules&&) noexcept = default;
SafetyRules& SafetyRules::operator=(SafetyRules&&) noexcept = default;
SafetyRules::~SafetyRules() = default;

std::vector<Decision> SafetyRules::step(const SafetyInput& input,
                                        const Recommendation& recommendation, HostBudget& budget,
                                        std::uint64_t& next_decision_id) {
  return impl_->step(input, recommendation, budget, next_decision_id);
}
std::vector<Outcome> SafetyRules::take_outcomes() { return impl_->take_outcomes(); }
void SafetyRules::written(const Decision& decision, WriteEnd end, const Limits& in_force,
                             MonotonicTime time) {
  impl_->written(decision, end, in_force, time);
}
void SafetyRules::vanished(MonotonicTime time) { impl_->vanished(time); }
void SafetyRules::forget_phases() { impl_->forget_phases(); }
std::optional<MonotonicTime> SafetyRules::quarantined_until(Resource resource) const {
  return impl_->quarantined_until(resource);
}
std::optional<OomSeen> SafetyRules::take_oom() { return impl_->take_oom(); }
const Limits& SafetyRules::original() const { return impl_->original(); }
bool SafetyRules::predates_write(MonotonicTime time) const {
  return impl_->predates_write(time);
}
Verdict SafetyRules::blocked_by(Resource resource) const { return impl_->blocked_by(resource); }
bool SafetyRules::wants_gpu_look() const { return impl_->wants_gpu_look(); }
bool SafetyRules::may_freeze() const { return impl_->may_freeze(); }

}  // namespace cgphase
