// The rules of safety between what a policy wants and what may be written (docs/safety.md). Pure:
// time comes in with each step. Rails may raise or revert on their own; lowering must pass all.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "collectors/sample.h"
#include "policy/budget/host_budget.h"
#include "policy/decision.h"
#include "policy/policy.h"
#include "policy/rails_config.h"
#include "policy/safety/oom_memory.h"

namespace cgphase {

// The first lowering of a quota rests on a look for GPUs that began at most so long ago, or two
// intervals where these are longer.
inline constexpr std::chrono::seconds kFreshGpuLook{5};

struct RailInput {
  MonotonicTime time;
  double interval_seconds = 0;     // since the previous sample of this container, 0 for the first
  const Sample* sample = nullptr;
  const Sample* previous = nullptr;  // null for the first
  bool gap = false;                // samples were lost before this one
  Phase phase;
  std::string_view owner;          // who shares the host's budget (ContainerInfo::owner)
  Mode mode = Mode::observe;
  bool hands_off = false;
  bool manage_unlimited = false;
  bool larger_margin = false;      // somebody kills on memory pressure, or near its limit
  bool gpu = false;                // it has a GPU, or that cannot be ruled out
  std::optional<MonotonicTime> gpu_ruled_out;  // when the look for it began; absent: none needed
  Limits original;                 // read at the first step only; a knob it lacks: the sample's
  HostCapacity host;
  double model_step_seconds = 1;
  double sampling_seconds = 1;     // between two samples, as configured
  // Left of what the container earned in an earlier cgroup of it (policy/safety/quarantines.h), of
  // CPU and of memory: at the first step, and when the history is read later than that.
  std::array<std::chrono::nanoseconds, 2> quarantine_left{};
  // What OOMs of the image taught (policy/safety/oom_memory.h); 0: nothing.
  double oom_floor_bytes = 0;
  // When systemd was last seen to write the limits anew: after a reload, or at an engine's update.
  std::optional<MonotonicTime> reload;
};

// Of one container. step() returns at most one decision per resource and tick: what is to be
// written (verdict allowed), or what was refused when the verdict or the wish changed since the
// last refusal, so that the journal tells each once.
class ContainerRails {
 public:
  ContainerRails(const RailsConfig& config, CgroupId id);
  // The same for many containers of one configuration; never null.
  ContainerRails(std::shared_ptr<const RailsConfig> config, CgroupId id);
  ContainerRails(ContainerRails&&) noexcept;
  ContainerRails& operator=(ContainerRails&&) noexcept;
  ~ContainerRails();

  std::vector<Decision> step(const RailInput& input, const Allocation& wish, HostBudget& budget,
                             std::uint64_t& next_decision_id);
  // Trials that ended since the last call.
  std::vector<Outcome> take_outcomes();
  // What the writer reported for an allowed decision. A failed one counts as a failed trial. A
  // raise that was not asked for here is the guard's, or a restore on request (reason `restored`).
  void written(const Decision& decision, WriteEnd end, const Limits& in_force, MonotonicTime time);
  // The cgroup is gone since the last step; a trial that ran is over.
  void vanished(MonotonicTime time);
  // When the last quarantine of it ends, or ended; absent where there was none.
  std::optional<MonotonicTime> quarantined_until(Resource resource) const;
  // An OOM under a limit of ours since the last call.
  std::optional<OomSeen> take_oom();
  // Another model gives phases from now on: what was measured by phase is forgotten, and a trial
  // that runs is judged as if the container had left the phase it began in. All else stays.
  void forget_phases();
  // The limits that now count as the original: the first seen, or those somebody else set.
  // Absent until the first step.
  const Limits& original() const;
  // As DriftWatch.
  bool predates_write(MonotonicTime time) const;
  // Why nothing is lowered at the moment, for `show` and `explain`.
  Verdict holding(Resource resource) const;
  // The quota would come down by the last step, or will when others have had their turn, if only a
  // GPU was looked for again.
  bool wants_gpu_look() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cgphase
