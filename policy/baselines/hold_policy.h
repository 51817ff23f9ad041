// `hold` is the strongest phase-free control so far. The limit is the 95 % quantile of the last 60
// samples x 1.1, and at least 1.1 x the last sample. It rises at once. It falls only by more than
// 10 %, and at least 10 samples after the last change.
#pragma once

#include <optional>

#include "policy/baselines/recent_samples.h"
#include "policy/policy_entry.h"

namespace cgphase {

inline constexpr std::array kHoldParameters = {
    PolicyParameter{"window", 60, kWarmUpSamples, RecentSamples::kMostSamples, true},  // samples
    PolicyParameter{"quantile", 0.95, 0, 1},
    PolicyParameter{"margin", 1.1, 1, 10},
    PolicyParameter{"drop", 0.1, 0, 0.9},        // share of the limit; a smaller drop is ignored
    PolicyParameter{"hold", 10, 0, 3600, true},  // samples between a change and a drop
};

class HoldPolicy final : public Policy {
 public:
  explicit HoldPolicy(const PolicyValues& values);

  void observe(const Observation& observation) override;
  Recommendation allocate(const Limits& original, const HostCapacity& host) const override;

 private:
  class Held {
   public:
    explicit Held(const PolicyValues& values);
    void add(double value);
    std::optional<double> level() const { return level_; }
    double count() const { return static_cast<double>(samples_.size()); }

   private:
    double quantile_, margin_, drop_;
    int hold_;
    RecentSamples samples_;
    std::optional<double> level_;  // absent while warming up
    int since_change_ = 0;         // samples
  };
  Held cpu_, memory_;
};

}  // namespace cgphase
