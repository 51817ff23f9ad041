// The spine: from one tick of raw readings to decisions. Pure: no clock, no files, no logging, no
// unordered iteration. The daemon, replay, property tests and benchmarks drive the same object, and
// the same ticks give the same decisions, byte for byte, on every machine.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "collectors/sample.h"
#include "model/feature_extractor.h"
#include "model/phase_tracker.h"
#include "policy/decision.h"
#include "policy/policy.h"
#include "policy/safety/guard_rails.h"
#include "policy/safety/rails_memory.h"

namespace cgphase {

// More lost intervals than this begin a new history and forbid lowering (docs/safety.md). Whoever
// plays recordings counts the same.
inline constexpr int kGapIntervals = 3;

// Model steps until a change of phase is seen and answered: how far a policy looks ahead for CPU.
inline constexpr double kReactionSteps = 2;

struct PipelineConfig {
  std::string policy = "phase";  // as parse_policy_spec() takes it
  double risk = kShippedRisk;
  // Of `risk`, for CPU: the rails answer a throttled second with the next one, an OOM kill with
  // nothing.
  double cpu_risk_factor = 10;
  RailsConfig rails;
  std::chrono::nanoseconds interval = std::chrono::seconds(1);  // expected between ticks
  bool manage_unlimited = false;
  std::uint64_t first_decision_id = 1;  // above those of earlier runs in the same journal
};

// The name under which runs of "the same thing" share what they taught.
const std::string& image_of(const ContainerInfo& info);

// What the driver sees beside a container, and the samples do not say; it may change.
struct Care {
  bool larger_margin = false, gpu = false;  // as in RailInput
  std::optional<MonotonicTime> gpu_ruled_out;
};

// What the driver knows about a container and the samples do not say.
struct Admission {
  Mode mode = Mode::observe;
  nlohmann::json prior;  // learned by earlier runs of its image; null = none
  Care care = {};        // by set_care()
  Limits original = {};  // of a knob that holds a value of ours already; else the first sample's
};

// What is known of one container; read by status, list, show and explain.
struct ContainerView {
  ContainerInfo info;
  Mode mode = Mode::observe;
  Phase phase;
  MonotonicTime phase_since;
  std::map<int, double> seconds_in_phase;   // by phase index; -1 = unknown or no history
  std::optional<double> cpu_cores;          // mean of the last interval
  std::optional<Bytes> memory_need;
  std::optional<double> highest_cpu_cores, highest_memory_bytes;  // of use and need, so far
  Sample sample;                            // the last one
  Limits in_force;                          // of CPU and memory, as last read or written
  Limits original;
  Granted granted;                          // by the host and the cgroups around it
  Allocation wish;                          // what the policy or a pin wants, before the rails
  Pin pin;
  Verdict cpu_holding = Verdict::observe_mode;
  Verdict memory_holding = Verdict::observe_mode;
  bool wants_gpu_look = false;              // ContainerRails::wants_gpu_look()
  bool inside = false;                      // in another one here, which uses what it uses as well
  // One that it lies in has such a limit: only what that one gives back is the host's again.
  bool cpu_limit_around = false, memory_limit_around = false;
  // Given back to the host so far against the original limit: core-seconds and byte-seconds.
  double saved_core_seconds = 0;
  double saved_byte_seconds = 0;
  // Of its tasks, for memory, while memory.high was lowered: PSI `some`; absent without PSI.
  std::optional<std::uint64_t> memory_delay_usec;
};

// Owned and used by one thread.
class Pipeline {
 public:
  // Errors: invalid for an unknown policy or parameter, and for a policy that only replay can
  // make. Without an engine every phase is "not enough history".
  static Result<Pipeline> create(const PipelineConfig& config,
                                 std::shared_ptr<const PhaseEngine> engine);
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;
  ~Pipeline();

  // Before or after the container's first sample; a container never admitted is observed.
  void admit(CgroupId id, Admission admission);
  void set_mode(CgroupId id, Mode mode);
  // Before or after its first sample, after admit().
  void set_care(CgroupId id, const Care& care);
  // From the next step on, for as long as this container is there.
  void set_pin(CgroupId id, const Pin& pin);
  // Somebody else sets limits on this host: nothing is lowered, and what was is raised again.
  void set_hands_off(bool hands_off) { hands_off_ = hands_off; }
  // Another model from the next step on; null: no phases. Nothing of what phases of the one before
  // taught applies, so no limit comes down before enough is known again; all else of a container
  // (original, trials, cool-downs, what was saved) stays. A prior comes by admit().
  void set_engine(std::shared_ptr<const PhaseEngine> engine);
  // Takes effect for containers that appear from now on; the others keep their cool-downs.
  void set_rails(const RailsConfig& rails) {
    config_.rails = rails;
    rails_ = std::make_shared<const RailsConfig>(rails);
  }

  // One tick, in ascending time. Decisions with verdict `allowed` are to be written, the others are
  // for the journal.
  std::vector<Decision> step(const NodeSample& tick);

  // What became of an allowed decision, and of a raise that the guard made by itself.
  void written(std::uint64_t decision_id, WriteEnd end, const Limits& in_force,
               MonotonicTime time);
  Decision guard_raised(CgroupId id, Resource resource, Reason reason, const Limits& in_force,
                        MonotonicTime time);
  std::vector<Outcome> take_outcomes();

  // Ascending CgroupId. Valid until the next step().
  const ContainerView* find(CgroupId id) const;
  std::vector<const ContainerView*> containers() const;

  // What went wrong under limits of ours, in this run and, once told, in earlier ones.
  const RailsMemory& rails_memory() const { return rails_memory_; }
  void set_rails_memory(RailsMemory memory) { rails_memory_ = std::move(memory); }
  // Adds what earlier runs knew, for the containers that are here, too.
  void take_earlier(const RailsMemory& earlier, WallTime now);
  // True once after it changed.
  bool take_rails_news() { return std::exchange(rails_news_, false); }

  // What the run of a container taught its policy; null where nothing.
  nlohmann::json learned(CgroupId id) const;
  // What its policy expects within `horizon`; absent where it does not look ahead.
  std::optional<Forecast> forecast(CgroupId id, std::chrono::seconds horizon) const;

 private:
  struct Container;
  Pipeline(const PipelineConfig& config, std::shared_ptr<const PhaseEngine> engine);
  PolicySurroundings surroundings() const;
  std::unique_ptr<Container> make_container(const ContainerInfo& info) const;
  void find_nested();
  // Policy of a container by `prior`, which knows what the run has shown.
  void set_policy(Container& container, const nlohmann::json& prior) const;
  void begin_run(Container& container, const Sample& first, MonotonicTime now) const;
  void save_runs(MonotonicTime now);
  // What the rails of a container say that outlives it.
  void remember(Container& container, const NodeSample& tick);
  void step_container(Container& container, const Sample& sample, const NodeSample& tick,
                      std::vector<Decision>& decisions);

  PipelineConfig config_;
  std::shared_ptr<const RailsConfig> rails_;  // config_.rails, which containers share
  PolicySpec policy_;  // of config_.policy
  std::shared_ptr<const PhaseEngine> engine_;
  std::map<CgroupId, std::unique_ptr<Container>> containers_;
  std::map<CgroupId, Admission> admissions_;  // of containers not yet seen
  std::map<std::uint64_t, Decision> pending_; // allowed, not yet reported by the writer
  std::vector<Outcome> outcomes_;             // of containers that vanished meanwhile
  HostBudget budget_;
  RailsMemory rails_memory_;
  bool rails_news_ = false;
  MonotonicTime next_run_save_;
  bool hands_off_ = false;
  std::uint64_t next_decision_id_;
};

}  // namespace cgphase
