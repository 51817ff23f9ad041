// The risk at which bounds are asked for, so that the share of samples over comes out near the
// accepted one: adaptive conformal inference (Gibbs and Candes, NeurIPS 2021), in the logarithm of
// the risk so that one step size serves risks from a ten-thousandth to a tenth. Bounds that err on
// the safe side are loosened while nothing is over, and tightened at once when something is. A
// value type; one thread.
#pragma once

#include <algorithm>

#include "policy/policy_spec.h"

namespace cgphase {

class SteeredRisk {
 public:
  // `accepted`: from kLeastRisk to kMostRisk.
  explicit SteeredRisk(double accepted) : accepted_(accepted), risk_(accepted) {}

  // One sample, and whether it was over. In the long run as many are as were accepted: only then
  // do the steps up and down cancel out.
  void add(bool over) {
    const double risk = over ? risk_ / kTighten : risk_ * (1 + kStep * accepted_);
    risk_ = std::clamp(risk, accepted_, kMostRisk);
  }
  // Never below the accepted one.
  double risk() const { return risk_; }

 private:
  static constexpr double kStep = 1.5;        // 1 and 2 do as well
  static constexpr double kTighten = 4.4817;  // e^kStep

  double accepted_, risk_;
};

}  // namespace cgphase
