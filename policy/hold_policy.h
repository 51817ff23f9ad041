// `hold`, the strongest phase-free control so far: 95 % quantile of the last 60 samples x 1.1,
// never below 1.1 x the last one; up at once, down only by more than 10 % and 10 samples after the
// last change.
#pragma once

#include <optional>

#include "policy/policy.h"
#include "policy/recent_samples.h"

namespace cgphase {

class HoldPolicy final : public Policy {
 public:
  void observe(const Observation& observation) override;
  Allocation allocate(const Limits& original, const HostCapacity& host) const override;
  nlohmann::json learned() const override;

 private:
  class Held {
   public:
    void add(double value);
    std::optional<double> level() const { return level_; }
    double count() const { return static_cast<double>(samples_.size()); }

   private:
    RecentSamples samples_;
    std::optional<double> level_;  // absent while warming up
    int since_change_ = 0;         // samples
  };
  Held cpu_, memory_;
};

}  // namespace cgphase
