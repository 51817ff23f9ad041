// The core turns everything that happened since the last turn into decisions. It is pure: no clock,
// no files, no logging, no unordered iteration. The daemon, replay, property tests and benchmarks
// drive the same class. The same inputs give the same outputs, byte for byte, on every machine.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "collectors/sample.h"
#include "core/foreign_writes.h"
#include "core/sleep.h"
#include "core/tick.h"
#include "model/feature_extractor.h"
#include "model/phase_tracker.h"
#include "policy/budget/host_share.h"
#include "policy/budget/shortage.h"
#include "policy/budget_config.h"
#include "policy/decision.h"
#include "policy/policy.h"
#include "policy/safety/safety_rules.h"
#include "policy/safety/safety_memory.h"
#include "policy/terms.h"

namespace cgphase {

struct Claimant;
class ShortageRule;

// More missed intervals than this start a new history and forbid lowering (docs/safety.md). Code
// that plays recordings uses the same number.
inline constexpr int kGapIntervals = 3;

// Model steps until a change of phase is detected and answered. A policy looks this far ahead for
// CPU.
inline constexpr double kReactionSteps = 2;

struct CoreConfig {
  std::string policy = "phase";  // in the form of parse_policy_spec()
  double risk = kShippedRisk;
  // Multiplies `risk` for CPU. The safety rules correct a throttled second in the next one; nothing
  // corrects an OOM kill.
  double cpu_risk_factor = 10;
  SafetyConfig safety;
  std::chrono::nanoseconds interval = std::chrono::seconds(1);  // expected between ticks
  bool manage_unlimited = false;
  BudgetConfig budget;
  CpuLever cpu_lever = CpuLever::weight;
  std::uint64_t first_decision_id = 1;  // above those of earlier runs in the same journal
};

// The name under which runs of the same program share what they learned: the image, else the name.
// A user chooses the names of the own containers, so that these share with nobody else's.
std::string image_of(const ContainerInfo& info);

// The initial state of a container, from the driver.
struct InitialState {
  Mode mode = Mode::observe;
  Terms terms = {};
  LearnedState prior = {};  // of earlier runs of its image
  ExternalFacts facts = {};
  Limits original = {};     // knobs that already have a value of ours; others come from the first
                            // sample
};

// The current state of one container. status, list, show and explain read it.
struct ContainerView {
  ContainerInfo info;
  Mode mode = Mode::observe;
  Terms terms;
  Phase phase;
  MonotonicTime phase_since;
  std::map<int, double> seconds_in_phase;   // by phase index; -1 = unknown or no history
  std::optional<double> cpu_cores;          // mean of the last interval
  std::optional<Bytes> memory_need;
  std::optional<double> highest_cpu_cores, highest_memory_bytes;  // highest use and need so far
  Sample sample;                            // the last one
  Limits in_force;                          // limits of CPU and memory, last read or written
  Limits original;
  AncestorLimits ancestor_limits;  // limits of the host and the ancestor cgroups
  Recommendation recommendation;                          // recommended, before the safety rules
  Pin pin;
  Grant grant;
  Shortage shortage;
  bool may_freeze = false;                  // SafetyRules::may_freeze()
  Verdict cpu_blocked_by = Verdict::observe_mode;
  Verdict memory_blocked_by = Verdict::observe_mode;
  bool wants_gpu_look = false;              // SafetyRules::wants_gpu_look()
  bool around_others = false;               // another tracked container is inside
  bool inside = false;                      // inside another tracked container, which is charged
                                            // for the same use
  // An enclosing container has such a limit. Only what that container gives back is available to
  // the host.
  bool cpu_limit_around = false, memory_limit_around = false;
  // Given back to the host so far, against the original limit: core-seconds and byte-seconds.
  double saved_core_seconds = 0;
  double saved_byte_seconds = 0;
  // Time that its tasks waited for memory while memory.high was lowered (PSI `some`). Absent
  // without PSI.
  std::optional<std::uint64_t> memory_delay_usec;
  IdleSleep sleep;
};

// One thread owns and uses it.
class Core {
 public:
  // Errors: invalid (an unknown policy or parameter, or a policy that only replay can create).
  // Without an engine every phase is "not enough history".
  static Result<Core> create(const CoreConfig& config,
                                 std::shared_ptr<const PhaseEngine> engine);
  Core(Core&&) noexcept;
  Core& operator=(Core&&) noexcept;
  ~Core();

  // Call it before or after the container's first sample. A container that is not admitted is
  // observed. If the container exists, only mode, terms and prior
  // count.
  void admit(CgroupId id, InitialState initial);
  void set_mode(CgroupId id, Mode mode);
  void set_terms(CgroupId id, const Terms& terms);
  // Takes effect in the next step and lasts as long as the container.
  void set_pin(CgroupId id, const Pin& pin);
  // Uses another model from the next step on; null: no phases. Statistics per phase of the old
  // model are dropped, so no limit is lowered before enough is known again. All other state of a
  // container (original, trials, cooldowns, savings) stays. admit() supplies a prior.
  void set_engine(std::shared_ptr<const PhaseEngine> engine);
  void set_budget(const BudgetConfig& budget) { config_.budget = budget; }
  void set_cpu_lever(CpuLever lever) { config_.cpu_lever = lever; }
  // Takes effect for containers that appear from now on. Existing ones keep their cooldowns.
  void set_safety(const SafetyConfig& safety) {
    config_.safety = safety;
    safety_ = std::make_shared<const SafetyConfig>(safety);
  }

  // One turn; times must ascend. While another manager sets limits on the host, nothing is lowered,
  // and lowered limits are raised again.
  TickOutput step(const TickInput& input);
  // A turn with a sample only.
  TickOutput step(const NodeSample& sample) { return step(TickInput{.sample = &sample}); }

  // Sums since the start.
  struct Totals {
    std::uint64_t ticks = 0, writes_up = 0, writes_down = 0, trials_reverted = 0, writes_failed = 0;
    double saved_core_seconds = 0, saved_byte_seconds = 0;  // of removed containers
  };
  const Totals& totals() const { return totals_; }

  // In ascending order of CgroupId. Valid until the next step().
  const ContainerView* find(CgroupId id) const;
  std::vector<const ContainerView*> containers() const;

  // Failures under limits of ours: of this run and, after take_earlier(), of earlier ones.
  const SafetyMemory& safety_memory() const { return safety_memory_; }
  void set_safety_memory(SafetyMemory memory) { safety_memory_ = std::move(memory); }
  // Adds the memory of earlier runs, also for containers that already exist.
  void take_earlier(const SafetyMemory& earlier, WallTime now);
  // True once after each change.
  bool drain_safety_news() { return std::exchange(safety_news_, false); }

  // The statistics that the container's policy learned in this run.
  LearnedState learned(CgroupId id) const;
  // The policy's forecast within `horizon`. Absent if the policy makes none.
  std::optional<Forecast> forecast(CgroupId id, std::chrono::seconds horizon) const;

 private:
  struct Container;
  Core(const CoreConfig& config, std::shared_ptr<const PhaseEngine> engine);
  PolicyEnvironment environment() const;
  std::unique_ptr<Container> make_container(const ContainerInfo& info) const;
  void find_nested();
  // Creates the container's policy from `prior` and the peak of the run so far.
  void set_policy(Container& container, const LearnedState& prior) const;
  void begin_run(Container& container, const Sample& first, MonotonicTime now) const;
  void save_runs(MonotonicTime now);
  // Stores what must outlive the container: OOMs and quarantines.
  void remember(Container& container, const NodeSample& tick);
  void finish(const FinishedWrite& write, MonotonicTime now, TickOutput& output);
  void put_back(const RestoredLimits& restored, MonotonicTime now, TickOutput& output);
  // Records that a limit was raised outside of a decision.
  void raised(CgroupId id, Resource resource, Reason reason, const Limits& before,
              const Limits& after, MonotonicTime time, AppliedChange::Origin origin,
              TickOutput& output);
  void step_sample(const TickInput& input, TickOutput& output);
  // Measures and recommends; then, when the budget is divided, decides.
  void sense(Container& container, const Sample& sample, const NodeSample& tick);
  void decide(Container& container, const Sample& sample, const NodeSample& tick,
              std::vector<Decision>& decisions);
  std::vector<Claimant> claimants() const;
  void observe_writes(const TickInput& input);
  std::string writer_of(const Decision& decision) const;
  void reclaim_memory(const NodeSample& tick, TickOutput& output);
  void drain_outcomes(const TickInput& input, TickOutput& output);

  CoreConfig config_;
  std::shared_ptr<const SafetyConfig> safety_;  // config_.safety, shared by the containers
  PolicySpec policy_;  // parsed config_.policy
  std::shared_ptr<const PhaseEngine> engine_;
  std::map<CgroupId, std::unique_ptr<Container>> containers_;
  std::map<CgroupId, InitialState> initial_states_;  // of containers without a sample
  std::map<std::uint64_t, Decision> pending_; // allowed, not yet reported by the writer
  std::vector<Outcome> outcomes_;             // of removed containers
  ForeignWrites foreign_writes_;
  MonotonicTime next_reclaim_;
  std::unique_ptr<ShortageRule> shortage_rule_;
  Totals totals_;
  HostBudget budget_;
  SafetyMemory safety_memory_;
  bool safety_news_ = false;
  MonotonicTime next_run_save_;
  bool other_manager_ = false;
  std::uint64_t next_decision_id_;
};

}  // namespace cgphase
