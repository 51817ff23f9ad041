// `sliding`, the first phase-free control: mean + 2 standard deviations of the last 60 samples,
// never below 1.05 x the last one, decided at each sample.
#pragma once

#include "policy/policy.h"
#include "policy/recent_samples.h"

namespace cgphase {

class SlidingPolicy final : public Policy {
 public:
  void observe(const Observation& observation) override;
  Allocation allocate(const Limits& original, const HostCapacity& host) const override;
  nlohmann::json learned() const override;

 private:
  RecentSamples cpu_, memory_;
};

}  // namespace cgphase
