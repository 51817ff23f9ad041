// `sliding`, the first phase-free control: mean + 2 standard deviations of the last 60 samples, and
// at least 1.05 x the last sample. It decides at each sample.
#pragma once

#include "policy/baselines/recent_samples.h"
#include "policy/policy_entry.h"

namespace cgphase {

inline constexpr std::array kSlidingParameters = {
    PolicyParameter{"window", 60, kWarmUpSamples, RecentSamples::kMostSamples, true},  // samples
    PolicyParameter{"deviations", 2, 0, 10},
    PolicyParameter{"above", 1.05, 1, 10},  // at least this factor times the last sample
};

class SlidingPolicy final : public Policy {
 public:
  explicit SlidingPolicy(const PolicyValues& values);

  void observe(const Observation& observation) override;
  Recommendation allocate(const Limits& original, const HostCapacity& host) const override;

 private:
  double wanted(const RecentSamples& samples) const;

  double deviations_, above_;
  RecentSamples cpu_, memory_;
};

}  // namespace cgphase
