// `adaptive-max` and `adaptive-2sd` use the statistic of the last window, (now - window, now], as
// the limit of the next one. This is the reactive policy that AI4DL (Buchaca et al., HotCloud'20)
// compares with. The window comes from the surroundings and has at most
// WindowStatistic::kMostSamples.
#pragma once

#include "policy/baselines/window_statistic.h"
#include "policy/policy_entry.h"

namespace cgphase {

inline constexpr std::array kAdaptiveDeviations = {PolicyParameter{"deviations", 2, 0, 10}};

class AdaptivePolicy final : public Policy {
 public:
  // `deviations`: standard deviations above the mean. Absent: the maximum.
  AdaptivePolicy(double window_seconds, std::optional<double> deviations)
      : window_seconds_(window_seconds), deviations_(deviations) {}

  void observe(const Observation& observation) override;
  Recommendation allocate(const Limits& original, const HostCapacity& host) const override;

 private:
  struct Measure {
    WindowStatistic window;
    int seen = 0;  // counts up to the warm-up
  };
  std::optional<double> wanted(const Measure& measure) const;

  double window_seconds_;
  std::optional<double> deviations_;
  Measure cpu_, memory_;
};

Result<std::unique_ptr<Policy>> make_adaptive_max(const PolicyArgs& making);
Result<std::unique_ptr<Policy>> make_adaptive_2sd(const PolicyArgs& making);

}  // namespace cgphase
