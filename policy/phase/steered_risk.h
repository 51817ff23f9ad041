// The risk at which bounds are computed, so that the share of samples above them stays near the
// accepted one. This is adaptive conformal inference (Gibbs and Candes, NeurIPS 2021). It uses the
// logarithm of the risk, so that one step size serves risks from a ten-thousandth to a tenth.
// Bounds that are too cautious are loosened while no sample exceeds them, and tightened at once
// when one does. A value type; one thread.
#pragma once

#include <algorithm>

#include "policy/policy_spec.h"

namespace cgphase {

class SteeredRisk {
 public:
  // `accepted`: from kLeastRisk to kMostRisk.
  explicit SteeredRisk(double accepted) : accepted_(accepted), risk_(accepted) {}

  // Adds one sample and whether it was above the bound. In the long run the share of such samples
  // is the accepted one: only then do the steps up and down cancel out.
  void add(bool over) {
    const double risk = over ? risk_ / kTighten : risk_ * (1 + kStep * accepted_);
    risk_ = std::clamp(risk, accepted_, kMostRisk);
  }
  // Never below the accepted risk.
  double risk() const { return risk_; }

 private:
  static constexpr double kStep = 1.5;        // 1 and 2 work as well
  static constexpr double kTighten = 4.4817;  // e^kStep

  double accepted_, risk_;
};

}  // namespace cgphase
