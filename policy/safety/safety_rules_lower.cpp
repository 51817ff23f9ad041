// The conditions for lowering a limit.
#include <algorithm>
#include <cmath>

#include "policy/safety/safety_rules_impl.h"
#include "policy/safety/limit_arithmetic.h"

namespace cgphase {

std::optional<Decision> SafetyRules::Impl::lower(Resource resource, const Step& step) {
  ResourceState& one = state_of(resource);
  const Limits& limits = step.limits();
  const Limits& original = drift_.original();
  const bool cpu = resource == Resource::cpu;
  const auto in_force = cpu ? cpu_in_force(limits, step.input.host)
                            : memory_in_force(limits, step.input.host);
  const bool limited = cpu ? original.cpu_cores().has_value() : original.memory_bytes().has_value();
  const bool file = cpu ? original.cpu_max.has_value() : original.memory_high && limits.memory_high;
  const bool recommendation =
      cpu ? step.recommendation.cpu.has_value() : step.recommendation.memory.has_value();
  one.blocked_by = Verdict::observe_mode;
  if (step.input.mode == Mode::observe) return std::nullopt;
  one.blocked_by = Verdict::granted;
  if (raised_above(resource, step)) return std::nullopt;
  one.blocked_by = Verdict::no_limit;
  if (!in_force || !file || (!limited && !step.input.manage_unlimited)) return std::nullopt;
  const Verdict owner = gate_owner(resource, step);
  const auto unless_owned = [&](Verdict verdict) {
    return owner == Verdict::allowed ? verdict : owner;
  };
  one.blocked_by = unless_owned(step.input.phase.known() ? Verdict::not_enough_samples
                                                      : Verdict::phase_unknown);
  if (!recommendation) return std::nullopt;
  const double wanted =
      cpu ? step.recommendation.cpu->value : static_cast<double>(step.recommendation.memory->value);
  one.blocked_by = unless_owned(Verdict::too_small);
  if (wanted > *in_force * (1 - config_.smallest_change_ratio)) return std::nullopt;
  const Proposal proposal = propose(resource, *in_force, wanted, step);
  one.blocked_by = gate(resource, proposal, step);
  if (cpu && proposal.worth_it && gpu_look_too_old(step)) {
    // Requested early: while the quota waits for a scan, memory could be served first repeatedly.
    wants_gpu_look_ = one.blocked_by == Verdict::allowed ||
                      one.blocked_by == Verdict::trial_running ||
                      one.blocked_by == Verdict::rate_limited;
    if (one.blocked_by == Verdict::allowed) {
      one.blocked_by = Verdict::gpu_container;  // for a tick or two only, so not reported
      return std::nullopt;
    }
  }
  // A reset may restore several limits one by one. The next sample shows whether it is one.
  const bool just_found = drift_.changed(Resource::cpu) || drift_.changed(Resource::memory);
  if (one.blocked_by == Verdict::silently_reverted && just_found) return std::nullopt;
  // Asked last, because a container that asks is served before others.
  if (one.blocked_by == Verdict::allowed &&
      !step.budget.may_lower(step.input.time, step.input.owner, id_, config_))
    one.blocked_by = Verdict::rate_limited;
  return report(resource, one.blocked_by, proposal, step);
}

MemoryState SafetyRules::Impl::memory_state(double limit_bytes, const Step& step) const {
  MemoryState state;
  state.limit_bytes = limit_bytes;
  // If need is unknown, nothing is given back.
  state.need_bytes = senses_->need_bytes().value_or(limit_bytes);
  state.peak_bytes = std::max(senses_->need_peak_bytes(), step.recommendation.memory_peak_bytes);
  state.bytes_per_sec = senses_->allocation_p99_bytes_per_sec();
  state.current_bytes =
      static_cast<double>(step.input.sample->memory_current.value_or(Bytes{0}).value);
  state.cold_cache_bytes =
      static_cast<double>(step.input.sample->memory.inactive_file_bytes.value_or(0));
  state.margin_factor = step.input.larger_margin ? config_.killed_margin_factor : 1;
  state.oom_floor_bytes = step.input.oom_floor_bytes;
  state.least_bytes = static_cast<double>(step.input.terms.memory_min.value_or(Bytes{}).value);
  return state;
}

SafetyRules::Impl::Proposal SafetyRules::Impl::propose(Resource resource, double in_force,
                                                             double wanted,
                                                             const Step& step) const {
  const Limits& limits = step.limits();
  const HostCapacity& host = step.input.host;
  Proposal proposal;
  const double worth = in_force * (1 - config_.smallest_change_ratio);
  if (resource == Resource::cpu) {
    proposal.floor = std::max(
        cpu_floor(config_, limits, senses_->usage_p99_cores(step.input.phase)),
        step.input.terms.cpu_min.value_or(Cores{}).value);
    const double cores = proved(resource, step) ? std::max(proposal.floor, wanted)
                                                : lowered_cpu(in_force, proposal.floor, wanted);
    proposal.limits =
        with_cpu(limits, drift_.original(), host, cores, step.recommendation.cpu_pinned);
    proposal.target = cpu_in_force(proposal.limits, host).value_or(0);
    proposal.worth_it = proposal.target <= worth;
    return proposal;
  }
  MemoryState state = memory_state(in_force, step);
  state.long_step =
      step.input.phase.known() && (senses_->steady(in_force) || proved(resource, step));
  const double bytes = lowered_memory(config_, limits, state, wanted);
  proposal.floor = memory_floor(config_, limits, state);
  proposal.limits =
      with_memory(limits, drift_.original(), host, bytes, step.recommendation.memory_pinned);
  proposal.target = memory_in_force(proposal.limits, host).value_or(0);
  proposal.worth_it = proposal.target < in_force && proposal.target <= worth;
  MemoryState bare = state;
  bare.oom_floor_bytes = 0;
  const double lower = lowered_memory(config_, limits, bare, wanted);
  if (!proposal.worth_it && lower <= worth) {
    proposal.oom_floor_in_way = true;  // report what the floor forbids
    proposal.limits =
        with_memory(limits, drift_.original(), host, lower, step.recommendation.memory_pinned);
  }
  state.current_bytes = state.cold_cache_bytes = 0;
  proposal.cache_in_way =
      !proposal.worth_it && lowered_memory(config_, limits, state, wanted) <= worth;
  return proposal;
}

// Checks every rule that a lowering must pass, and returns the first that refuses.
Verdict SafetyRules::Impl::gate(Resource resource, const Proposal& proposal,
                                   const Step& step) const {
  const Verdict verdict = gate_container(resource, step);
  if (verdict != Verdict::allowed) return verdict;
  if (proposal.oom_floor_in_way) return Verdict::oom_remembered;
  if (trial_running(resource)) return Verdict::trial_running;
  if (rate_limited(resource, step)) return Verdict::rate_limited;
  if (resource == Resource::memory) {
    const auto in_force = memory_in_force(step.limits(), step.input.host);
    if (senses_->growing(in_force.value_or(0))) return Verdict::memory_growing;
    if (proposal.cache_in_way) return Verdict::cache_in_way;
  }
  if (!proposal.worth_it) return Verdict::at_floor;
  return step.input.mode == Mode::enforce ? Verdict::allowed : Verdict::advise_mode;
}

// Rules that block a lowering regardless of the recommendation.
Verdict SafetyRules::Impl::gate_owner(Resource resource, const Step& step) const {
  if (step.input.hands_off) return Verdict::hands_off;
  if (step.rival) return Verdict::rival;
  const bool cpu = resource == Resource::cpu;
  if (cpu && step.input.gpu && !config_.lower_gpu_quota) return Verdict::gpu_container;
  // An administrator's pin asks for a quota.
  if (cpu && step.input.cpu_lever == CpuLever::weight && !step.recommendation.cpu_pinned)
    return Verdict::shared_by_weight;
  const ProgramStat& programs = step.input.sample->programs;
  return (cpu ? programs.reads_cpu : programs.reads_memory) ? Verdict::reads_limits
                                                            : Verdict::allowed;
}

// A process may have opened a GPU since the scan. Only an original quota needs a recent scan: a
// lowered one is restored as soon as a GPU is seen.
bool SafetyRules::Impl::gpu_look_too_old(const Step& step) const {
  const auto& ruled_out = step.input.gpu_ruled_out;
  if (!ruled_out || config_.lower_gpu_quota ||
      !is_original(step.limits(), drift_.original(), Resource::cpu))
    return false;
  const std::chrono::duration<double> two_intervals(2 * step.input.interval_seconds);
  return step.input.time - *ruled_out >
         std::max<std::chrono::duration<double>>(kFreshGpuLook, two_intervals);
}

Verdict SafetyRules::Impl::gate_container(Resource resource, const Step& step) const {
  const ResourceState& one = state_of(resource);
  const MonotonicTime now = step.input.time;
  const Recommendation& recommendation = step.recommendation;
  const double samples = resource == Resource::cpu ? recommendation.cpu_sample_count
                                                   : recommendation.memory_sample_count;
  const Verdict owner = gate_owner(resource, step);
  if (owner != Verdict::allowed) return owner;
  if (drift_.blocked_by(now) != Verdict::allowed) return drift_.blocked_by(now);
  if (watch_.stale()) return Verdict::stale_data;
  if (!step.input.phase.known()) return Verdict::phase_unknown;
  const double share = resource == Resource::memory ? kMemorySampleShare : 1;
  if (samples < share * config_.enough_samples && !proved(resource, step))
    return Verdict::not_enough_samples;
  // Also after earlier runs: peaks, rates and baselines of this run start with the measurements.
  if (catching_up_ && !senses_->know(step.input.phase, config_.enough_samples))
    return Verdict::not_enough_samples;
  if (one.backoff.quarantined(now)) return Verdict::quarantined;
  if (one.backoff.cooling(now)) return Verdict::cool_down;
  if (resource == Resource::cpu && wait_.spent() && within(last_wait_, config_.cool_down, now))
    return Verdict::cool_down;
  if (!senses_->quiet(resource)) return Verdict::pressure_not_quiet;
  if (resource == Resource::cpu && senses_->throttled()) return Verdict::pressure_not_quiet;
  return Verdict::allowed;
}

// Enough earlier runs of the image saw this phase.
bool SafetyRules::Impl::proved(Resource resource, const Step& step) const {
  return step.recommendation.earlier_runs_for(resource) >= config_.enough_runs;
}

// Each resource waits only for its own trial. The two trials judge different measures, except for
// progress, and a loss of progress reverts both.
bool SafetyRules::Impl::trial_running(Resource resource) const {
  const ResourceState& one = state_of(resource);
  return one.trial || one.raising || one.lowering;
}

bool SafetyRules::Impl::rate_limited(Resource resource, const Step& step) const {
  // memory.high is soft and may follow need quickly. A quota throttles at once, so only one that is
  // proved may follow each phase.
  const auto window = resource == Resource::cpu && !proved(resource, step)
                          ? config_.cpu_lower_window : config_.memory_lower_window;
  // Raises count, too: a limit that was just raised is not lowered within the window.
  return within(state_of(resource).last_change, window, step.input.time);
}

std::optional<Decision> SafetyRules::Impl::report(Resource resource, Verdict verdict,
                                                   const Proposal& proposal, const Step& step) {
  ResourceState& one = state_of(resource);
  const MonotonicTime now = step.input.time;
  if (verdict != Verdict::allowed) {
    const bool told = one.refused && one.refused->verdict == verdict &&
                      std::abs(one.refused->target - proposal.target) <=
                          config_.smallest_change_ratio * one.refused->target;
    if (told) return std::nullopt;
    one.refused = Refusal{verdict, proposal.target};
  }
  Decision decision = new_decision(resource, Direction::lower, proposal.limits, step);
  decision.verdict = verdict;
  decision.evidence[Fact::floor] = proposal.floor;
  const Reason reason = step.recommendation.reason_for(resource);
  decision.reason = reason == Reason::phase_changed ? Reason::phase_statistics : reason;
  decision.decision_id = step.next_id++;
  if (verdict != Verdict::allowed) return decision;
  one.lowering = std::make_unique<Pending>(decision, proposal.target);
  one.last_change = now;
  one.refused.reset();
  step.budget.lowered(now, step.input.owner, id_);
  drift_.asked(decision);
  return decision;
}

}  // namespace cgphase
