// `ai4dl-phase` and `ai4dl-phase-compat` allocate mean + 2 standard deviations of the demand in the
// current phase, over all containers of the training data (AI4DL: Buchaca et al., HotCloud'20).
// Both use the same arithmetic. The first uses the phases of cgphase's model, the second those that
// AI4DL's own method gives.
//
// The policy has no opinion, and the limit stays, if the phase is unknown or did not occur in
// training. The same holds for a resource that training did not measure in the phase (its mean is
// NaN). It is for replay only, because the statistics come from the recorded demand of the training
// executions.
#pragma once

#include "policy/policy_entry.h"

namespace cgphase {

inline constexpr std::array kAi4dlParameters = {PolicyParameter{"deviations", 2, 0, 10}};

class Ai4dlPolicy final : public Policy {
 public:
  Ai4dlPolicy(std::shared_ptr<const std::vector<PhaseStatistics>> statistics, double deviations)
      : statistics_(std::move(statistics)), deviations_(deviations) {}

  void observe(const Observation& observation) override;
  Recommendation allocate(const Limits& original, const HostCapacity& host) const override;

 private:
  std::shared_ptr<const std::vector<PhaseStatistics>> statistics_;  // by index of the phase
  double deviations_;
  Phase phase_;
};

// Errors: invalid, if the surroundings have no statistics.
Result<std::unique_ptr<Policy>> make_ai4dl(const PolicyArgs& making);

}  // namespace cgphase
