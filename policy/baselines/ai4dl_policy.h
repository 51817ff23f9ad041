// `ai4dl-phase` and `ai4dl-phase-compat`: mean + 2 standard deviations of what all containers of
// the training data needed in the phase of now (AI4DL: Buchaca et al., HotCloud'20).
// One arithmetic for both: the first is fed the phases of cgphase's model, the second those of
// AI4DL's own way of making them.
//
// A phase that is not known, or that training never saw, gives no opinion: the limit stays. So it
// does for a resource that training did not measure in the phase: its mean is no number (NaN).
// For replay only: the statistics are those of the recorded demand of the training executions.
#pragma once

#include "policy/policy_entry.h"

namespace cgphase {

inline constexpr std::array kAi4dlParameters = {PolicyParameter{"deviations", 2, 0, 10}};

class Ai4dlPolicy final : public Policy {
 public:
  Ai4dlPolicy(std::shared_ptr<const std::vector<PhaseStatistics>> statistics, double deviations)
      : statistics_(std::move(statistics)), deviations_(deviations) {}

  void observe(const Observation& observation) override;
  Allocation allocate(const Limits& original, const HostCapacity& host) const override;
  nlohmann::json learned() const override;

 private:
  std::shared_ptr<const std::vector<PhaseStatistics>> statistics_;  // by index of the phase
  double deviations_;
  Phase phase_;
};

// Errors: invalid where the surroundings have no statistics.
Result<std::unique_ptr<Policy>> make_ai4dl(const PolicyMaking& making);

}  // namespace cgphase
