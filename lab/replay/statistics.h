// Statistics of ai4dl-phase: mean and deviation of the demand in each phase, over training
// executions.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/phase_tracker.h"
#include "policy/policy_spec.h"
#include "traces/trace.h"

namespace cgphase {

class TrainedStatistics {
 public:
  // Computed over the rows of `training`, all containers together, in cores and bytes, as AI4DL
  // publishes it. The mean of a resource that was not measured in a phase is NaN.
  //
  // Without `training`, the statistics of the engine's model are used, which are relative to a
  // container's limits. `compat`: phases as AI4DL's release computes them. Errors: invalid (neither
  // exists).
  static Result<TrainedStatistics> create(std::span<const Execution> training,
                                          const std::shared_ptr<const PhaseEngine>& engine,
                                          bool compat);

  // Statistics for a container with these limits.
  std::shared_ptr<const std::vector<PhaseStatistics>> of(const Limits& original,
                                                         const HostCapacity& host) const;

 private:
  bool relative_ = false;
  std::shared_ptr<const std::vector<PhaseStatistics>> phases_;
};

}  // namespace cgphase
