// The state of one container's safety rules between two steps. safety_rules.cpp follows events and
// raises. safety_rules_lower.cpp checks lowerings. safety_rules_weight.cpp sets cpu.weight.
// safety_rules_grant.cpp sets what the budget of the host grants. safety_rules_freeze.cpp freezes
// and thaws.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policy/safety/external_change.h"
#include "policy/safety/limit_arithmetic.h"
#include "policy/safety/safety_rules.h"
#include "policy/safety/oom_memory.h"
#include "policy/safety/usage_tracker.h"
#include "policy/safety/event_tracker.h"
#include "policy/safety/backoff.h"
#include "policy/safety/conflict_detector.h"
#include "policy/safety/trial.h"

namespace cgphase {

// Of a weight, a freeze and what the budget grants: a change without an answer is given up, and one
// after a failed write is delayed.
inline constexpr std::chrono::seconds kAnswerPatience{60};
inline constexpr std::chrono::seconds kRetryPause{10};

inline bool within(const std::optional<MonotonicTime>& moment, std::chrono::nanoseconds length,
                   MonotonicTime now) {
  return moment && now - *moment < length;
}

class SafetyRules::Impl {
 public:
  Impl(std::shared_ptr<const SafetyConfig> config, CgroupId id)
      : shared_config_(std::move(config)),
        config_(*shared_config_),
        id_(id),
        drift_(config_),
        rival_(config_),
        watch_(config_),
        states_{ResourceState(config_), ResourceState(config_)} {}
  Impl(const Impl&) = delete;  // its members refer to its config_

  std::vector<Decision> step(const SafetyInput& input, const Recommendation& recommendation,
                             HostBudget& budget, std::uint64_t& next_decision_id);
  std::vector<Outcome> take_outcomes() { return std::exchange(outcomes_, {}); }
  void written(const Decision& decision, WriteEnd end, const Limits& in_force, MonotonicTime time);
  void vanished(MonotonicTime time);
  void forget_phases();
  std::optional<MonotonicTime> quarantined_until(Resource resource) const {
    return state_of(resource).backoff.quarantined_until();
  }
  std::optional<OomSeen> take_oom() { return std::exchange(oom_seen_, std::nullopt); }
  const Limits& original() const { return drift_.original(); }
  bool predates_write(MonotonicTime time) const { return drift_.predates_write(time); }
  Verdict blocked_by(Resource resource) const { return state_of(resource).blocked_by; }
  bool wants_gpu_look() const { return wants_gpu_look_; }
  bool may_freeze() const { return may_freeze_; }

 private:
  struct Pending {
    Decision decision;
    double target = 0;
  };
  // A raise that the kernel refused is repeated at growing intervals.
  struct FailedRaise {
    double target = 0;
    MonotonicTime until;  // until then only a higher raise is requested
    std::chrono::seconds pause{0};
  };
  struct Refusal {
    Verdict verdict;
    double target;
  };
  // The state of one resource.
  struct ResourceState {
    explicit ResourceState(const SafetyConfig& config) : backoff(config) {}
    Backoff backoff;
    // Heap-allocated, because most containers have none of these.
    std::unique_ptr<Trial> trial;
    std::unique_ptr<Pending> lowering, raising;  // requested, not yet answered
    std::unique_ptr<FailedRaise> failed;         // set since the last successful raise
    std::optional<Reason> restore;             // requested until the original is in force
    std::optional<MonotonicTime> last_change, last_cpu_raise, last_fast_path_raise;
    std::optional<Refusal> refused;
    Verdict blocked_by = Verdict::stale_data;
  };
  // The state of cpu.weight, which needs no trial.
  struct WeightState {
    std::uint64_t asked = 0;               // the decision not yet answered; 0: none
    MonotonicTime asked_at;
    std::optional<MonotonicTime> failed;   // the last write, if it failed
    std::optional<std::uint32_t> advised;  // reported, but not written in this mode
  };
  // The state of cgroup.freeze. Null while no freeze is allowed or in force.
  struct FreezeState {
    std::uint64_t asked = 0;               // the decision not yet answered; 0: none
    MonotonicTime asked_at;
    std::optional<MonotonicTime> failed;   // the last write, if it failed
    std::optional<MonotonicTime> since;    // frozen by us; absent: not, or by an earlier daemon
    std::optional<MonotonicTime> lease_ends;
    MonotonicTime rest_until;              // it runs until then
    bool advised = false;                  // reported, but not written in this mode
  };
  // What the budget grants, of CPU or memory. Null while the original is in force and nothing is
  // granted.
  struct GrantState {
    std::uint64_t asked = 0;               // the decision not yet answered; 0: none
    MonotonicTime asked_at;
    std::optional<MonotonicTime> failed_raise, failed_lowering;  // since the last success
    std::optional<MonotonicTime> changed;
    std::optional<double> advised;         // reported, but not written in this mode
    NeedWindow wanted{kMemoryHorizon};     // of the last minute
    std::vector<Counter> readers;  // processes before each program that may have read it started
  };
  struct Raise {
    Limits limits;
    double target = 0;
    Reason reason = Reason::headroom;
  };
  struct Proposal {
    Limits limits;
    double target = 0;
    double floor = 0;  // the safety rules write no less
    bool worth_it = false;
    bool cache_in_way = false;
    bool oom_floor_in_way = false;
  };
  // The input of one step.
  struct Step {
    const SafetyInput& input;
    const Recommendation& recommendation;
    HostBudget& budget;
    std::uint64_t& next_id;
    bool rival = false;  // a conflicting writer sets this container's limits
    const Limits& limits() const { return input.sample->limits; }
    bool active() const { return input.mode == Mode::enforce && !input.hands_off && !rival; }
  };

  ResourceState& state_of(Resource resource) { return states_[static_cast<std::size_t>(resource)]; }
  const ResourceState& state_of(Resource resource) const {
    return states_[static_cast<std::size_t>(resource)];
  }

  void begin(const Step& step);
  void take_quarantines(const Step& step);
  // True while nothing of ours is in force or pending and nobody may act. Only state that later
  // steps need is updated.
  bool only_watched(const Step& step) const;
  void only_watch(const Step& step);
  void sense(const Step& step);
  void follow_trials(const Step& step);
  static void keep_wanted(ResourceState& state, Reason reason);
  static void put_off(ResourceState& state, double target, MonotonicTime time);
  void forget_unanswered(ResourceState& state, MonotonicTime now);
  void raised_by_fast_path(const Decision& decision, MonotonicTime time);
  void want_restore(Resource resource, Reason reason, const Step& step);
  void latch_memory_trouble(const Step& step);
  void latch_restores(const Step& step);
  bool lowered(Resource resource, const Step& step) const;
  void note_oom(bool limit_met);

  std::optional<Decision> decide(Resource resource, const Step& step);
  std::optional<Decision> decide_grant(Resource resource, const Step& step);
  // Whether the write was one of decide_grant(), or put back what it granted.
  bool grant_written(const Decision& decision, WriteEnd end, const Limits& in_force,
                     MonotonicTime time);
  bool raised_above(Resource resource, const Step& step) const;
  static constexpr std::size_t kMostReaders = 64;
  void follow_readers(GrantState& state, bool other, const Step& step) const;
  double agreed_amount(Resource resource, double own, const Step& step) const;
  // `gently`: most page cache stays, too.
  double granted_floor(Resource resource, double found, bool gently, const Step& step) const;
  MemoryState memory_state(double limit_bytes, const Step& step) const;
  // Nothing is lowered: it is the original, or more.
  bool unlowered(Resource resource, const Step& step) const;
  std::optional<Decision> decide_weight(const Step& step);
  void weight_written(const Decision& decision, WriteEnd end, const Limits& in_force,
                      MonotonicTime time);
  bool frozen_by_us(const Step& step) const;
  // The longest freeze, if it is allowed now.
  std::optional<std::chrono::seconds> freeze_consent(const Step& step) const;
  std::optional<Reason> why_thaw(const Step& step) const;
  static void thawed(FreezeState& state, MonotonicTime time);
  void take_late_thaw(const Step& step);
  std::optional<Decision> decide_freeze(const Step& step);
  void freeze_written(const Decision& decision, WriteEnd end, const Limits& in_force,
                      MonotonicTime time);
  std::optional<Raise> find_raise(Resource resource, const Step& step);
  std::optional<Raise> end_trial(Resource resource, const Step& step);
  std::optional<Raise> cpu_raise(double in_force, const Step& step);
  std::optional<Raise> memory_raise(double in_force, const Step& step);
  Decision raise(Resource resource, const Raise& raise, const Step& step);
  std::optional<Decision> lower(Resource resource, const Step& step);
  Proposal propose(Resource resource, double in_force, double wanted, const Step& step) const;
  Verdict gate(Resource resource, const Proposal& proposal, const Step& step) const;
  Verdict gate_container(Resource resource, const Step& step) const;
  Verdict gate_owner(Resource resource, const Step& step) const;
  bool trial_running(Resource resource) const;
  bool proved(Resource resource, const Step& step) const;
  bool rate_limited(Resource resource, const Step& step) const;
  bool gpu_look_too_old(const Step& step) const;
  std::optional<Decision> report(Resource resource, Verdict verdict, const Proposal& proposal,
                               const Step& step);
  Decision new_decision(Resource resource, Direction direction, const Limits& limits,
                        const Step& step) const;
  void conclude(const Decision& decision, OutcomeKind kind, std::string detail,
                MonotonicTime time);

  const std::shared_ptr<const SafetyConfig> shared_config_;
  const SafetyConfig& config_;
  CgroupId id_;
  bool begun_ = false;
  double model_step_seconds_ = 1, sampling_seconds_ = 1;
  ExternalChangeDetector drift_;
  ConflictDetector rival_;
  EventTracker watch_;
  // Absent while the container is only watched. Afterwards the statistics of that time are missing
  // and must be collected first: `catching_up_`.
  std::unique_ptr<UsageTracker> senses_;
  Baselines baselines_;
  bool watched_ = false, catching_up_ = false;
  std::array<ResourceState, 2> states_;  // CPU and memory
  WaitBudget wait_;                // by lowered quotas
  std::optional<MonotonicTime> last_wait_;
  bool quota_was_lowered_ = false;  // in the last step
  WeightState weight_;
  std::unique_ptr<FreezeState> freeze_;
  bool may_freeze_ = false;  // as of the last step
  std::array<std::unique_ptr<GrantState>, 2> grants_;  // CPU and memory
  OomWatch oom_;
  std::optional<OomSeen> oom_seen_;
  bool fast_path_saw_event_ = false;  // a memory event since the last step
  bool wants_gpu_look_ = false;
  std::vector<Outcome> outcomes_;
};

}  // namespace cgphase
