// The safety rules between a recommendation and a write (docs/safety.md). Pure: each step passes
// the time. The rules may raise or revert on their own. A lowering must pass all of them.
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
#include "policy/budget/host_share.h"
#include "policy/budget/shortage.h"
#include "policy/decision.h"
#include "policy/policy.h"
#include "policy/terms.h"
#include "policy/safety_config.h"
#include "policy/safety/oom_memory.h"

namespace cgphase {

// The first lowering of a quota needs a GPU scan that began at most this long ago, or two sampling
// intervals if that is longer.
inline constexpr std::chrono::seconds kFreshGpuLook{5};

struct SafetyInput {
  MonotonicTime time;
  double interval_seconds = 0;     // since the previous sample of this container, 0 for the first
  const Sample* sample = nullptr;
  const Sample* previous = nullptr;  // null for the first
  bool gap = false;                // samples were lost before this one
  Phase phase;
  std::string_view owner;          // the owner that shares the host's budget (ContainerInfo::owner)
  Mode mode = Mode::observe;
  Terms terms = {};                // of the container's owner
  Grant grant = {};                // by the budget of the host
  Shortage shortage = {};                // while the host is short of memory
  CpuLever cpu_lever = CpuLever::both;
  bool hands_off = false;
  bool manage_unlimited = false;
  bool larger_margin = false;      // another program kills on memory pressure, or near the limit
  bool gpu = false;                // it has a GPU, or may have one
  std::optional<MonotonicTime> gpu_ruled_out;  // start of the GPU scan that found none; absent: not
                                               // needed
  Limits original;                 // read only in the first step; missing knobs come from the
                                   // sample
  HostCapacity host;
  double model_step_seconds = 1;
  double sampling_seconds = 1;     // between two samples, as configured
  // Remaining quarantine from an earlier cgroup of the container (policy/safety/quarantines.h), for
  // CPU and memory. Set in the first step, or later when the history has been read.
  std::array<std::chrono::nanoseconds, 2> quarantine_left{};
  // Memory floor from OOMs of the image (policy/safety/oom_memory.h); 0: none.
  double oom_floor_bytes = 0;
  // The last time systemd wrote the limits anew: after a reload, or when an engine updated them.
  std::optional<MonotonicTime> reload;
};

// The rules for one container. step() returns at most one decision per resource and tick. It is
// either to be written (verdict allowed) or a refusal. A refusal is returned only if the verdict or
// the recommendation changed, so that the journal contains each one once.
class SafetyRules {
 public:
  SafetyRules(const SafetyConfig& config, CgroupId id);
  // Shares one configuration among many containers. It must not be null.
  SafetyRules(std::shared_ptr<const SafetyConfig> config, CgroupId id);
  SafetyRules(SafetyRules&&) noexcept;
  SafetyRules& operator=(SafetyRules&&) noexcept;
  ~SafetyRules();

  std::vector<Decision> step(const SafetyInput& input, const Recommendation& recommendation,
                             HostBudget& budget, std::uint64_t& next_decision_id);
  // Returns trials that ended since the last call.
  std::vector<Outcome> take_outcomes();
  // Reports the result of an allowed decision. A failed write counts as a failed trial. A raise
  // that this class did not request is by the fast path, or a requested restore (reason
  // `restored`).
  void written(const Decision& decision, WriteEnd end, const Limits& in_force, MonotonicTime time);
  // The cgroup disappeared after the last step. A running trial ends.
  void vanished(MonotonicTime time);
  // End of the last quarantine of `resource`, which may be over. Absent if there was none.
  std::optional<MonotonicTime> quarantined_until(Resource resource) const;
  // An OOM under a limit of ours since the last call.
  std::optional<OomSeen> take_oom();
  // Another model is used from now on. Statistics per phase are dropped, and a running trial is
  // judged as if the container had left the phase of the decision. All else stays.
  void forget_phases();
  // The limits that count as the original: the first ones seen, or those that somebody else set.
  // Absent until the first step.
  const Limits& original() const;
  // As in ExternalChangeDetector.
  bool predates_write(MonotonicTime time) const;
  // The verdict that blocks a lowering now, for `show` and `explain`.
  Verdict blocked_by(Resource resource) const;
  // True if only a new GPU scan is missing. With one, the last step would have lowered the quota,
  // or a later step would when it is the container's turn.
  bool wants_gpu_look() const;
  // Whether the last step would have frozen it if it had been asked to.
  bool may_freeze() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cgphase
