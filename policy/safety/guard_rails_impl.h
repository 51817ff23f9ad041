// What one container's rails keep between two steps. In two files: guard_rails.cpp follows what
// happened and raises, guard_rails_lower.cpp is what a lowering must pass.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policy/safety/drift.h"
#include "policy/safety/guard_rails.h"
#include "policy/safety/oom_memory.h"
#include "policy/safety/rail_senses.h"
#include "policy/safety/rail_watch.h"
#include "policy/safety/restraint.h"
#include "policy/safety/rival.h"
#include "policy/safety/trial.h"

namespace cgphase {

inline bool within(const std::optional<MonotonicTime>& moment, std::chrono::nanoseconds length,
                   MonotonicTime now) {
  return moment && now - *moment < length;
}

class ContainerRails::Impl {
 public:
  Impl(std::shared_ptr<const RailsConfig> config, CgroupId id)
      : shared_config_(std::move(config)),
        config_(*shared_config_),
        id_(id),
        drift_(config_),
        rival_(config_),
        watch_(config_),
        lanes_{Lane(config_), Lane(config_)} {}
  Impl(const Impl&) = delete;  // its parts refer to its config_

  std::vector<Decision> step(const RailInput& input, const Allocation& wish, HostBudget& budget,
                             std::uint64_t& next_decision_id);
  std::vector<Outcome> take_outcomes() { return std::exchange(outcomes_, {}); }
  void written(const Decision& decision, WriteEnd end, const Limits& in_force, MonotonicTime time);
  void vanished(MonotonicTime time);
  void forget_phases();
  std::optional<MonotonicTime> quarantined_until(Resource resource) const {
    return lane(resource).restraint.quarantined_until();
  }
  std::optional<OomSeen> take_oom() { return std::exchange(oom_seen_, std::nullopt); }
  const Limits& original() const { return drift_.original(); }
  bool predates_write(MonotonicTime time) const { return drift_.predates_write(time); }
  Verdict holding(Resource resource) const { return lane(resource).holding; }
  bool wants_gpu_look() const { return wants_gpu_look_; }

 private:
  struct Pending {
    Decision decision;
    double target = 0;
  };
  // What the kernel refuses is asked for again, less and less often.
  struct FailedRaise {
    double target = 0;
    MonotonicTime until;  // nothing that is not higher is asked for
    std::chrono::seconds pause{0};
  };
  struct Refusal {
    Verdict verdict;
    double target;
  };
  // What is kept for one resource.
  struct Lane {
    explicit Lane(const RailsConfig& config) : restraint(config) {}
    Restraint restraint;
    // Apart, for most containers have none.
    std::unique_ptr<Trial> trial;
    std::unique_ptr<Pending> lowering, raising;  // asked for, not yet answered
    std::unique_ptr<FailedRaise> failed;         // since a raise was last written
    std::optional<Reason> restore;             // wanted until the original is in force
    std::optional<MonotonicTime> last_change, last_cpu_raise, last_guard_raise;
    std::optional<Refusal> refused;
    Verdict holding = Verdict::stale_data;
  };
  struct Raise {
    Limits limits;
    double target = 0;
    Reason reason = Reason::headroom;
  };
  struct Proposal {
    Limits limits;
    double target = 0;
    double floor = 0;  // the rails write no less
    bool worth_it = false;
    bool cache_in_way = false;
    bool oom_floor_in_way = false;
  };
  // One step's surroundings.
  struct Step {
    const RailInput& input;
    const Allocation& wish;
    HostBudget& budget;
    std::uint64_t& next_id;
    bool rival = false;  // somebody else sets this container's limits
    const Limits& limits() const { return input.sample->limits; }
    bool active() const { return input.mode == Mode::enforce && !input.hands_off && !rival; }
  };

  Lane& lane(Resource resource) { return lanes_[static_cast<std::size_t>(resource)]; }
  const Lane& lane(Resource resource) const { return lanes_[static_cast<std::size_t>(resource)]; }

  void begin(const Step& step);
  void take_quarantines(const Step& step);
  // Nothing of ours is in force or on its way, and nobody may act: only what must be known later.
  bool only_watched(const Step& step) const;
  void only_watch(const Step& step);
  void sense(const Step& step);
  void follow_trials(const Step& step);
  static void keep_wanted(Lane& lane, Reason reason);
  static void put_off(Lane& lane, double target, MonotonicTime time);
  void forget_unanswered(Lane& lane, MonotonicTime now);
  void raised_by_guard(const Decision& decision, MonotonicTime time);
  void want_restore(Resource resource, Reason reason, const Step& step);
  void latch_memory_trouble(const Step& step);
  void latch_restores(const Step& step);
  bool lowered(Resource resource, const Step& step) const;
  void note_oom(bool limit_met);

  std::optional<Decision> decide(Resource resource, const Step& step);
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
  bool rate_limited(Resource resource, const Step& step) const;
  bool gpu_look_too_old(const Step& step) const;
  std::optional<Decision> tell(Resource resource, Verdict verdict, const Proposal& proposal,
                               const Step& step);
  Decision new_decision(Resource resource, Direction direction, const Limits& limits,
                        const Step& step) const;
  void conclude(const Decision& decision, OutcomeKind kind, std::string detail,
                MonotonicTime time);

  const std::shared_ptr<const RailsConfig> shared_config_;
  const RailsConfig& config_;
  CgroupId id_;
  bool begun_ = false;
  double model_step_seconds_ = 1, sampling_seconds_ = 1;
  DriftWatch drift_;
  RivalWatch rival_;
  RailWatch watch_;
  // Absent while the container is only watched. What they would have known of that time they must
  // learn first: `catching_up_`.
  std::unique_ptr<RailSenses> senses_;
  Baselines baselines_;
  bool watched_ = false, catching_up_ = false;
  std::array<Lane, 2> lanes_;
  OomWatch oom_;
  std::optional<OomSeen> oom_seen_;
  bool guard_saw_event_ = false;  // of memory, since the last step
  bool wants_gpu_look_ = false;
  std::vector<Outcome> outcomes_;
};

}  // namespace cgphase
