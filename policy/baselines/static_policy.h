// `static`: the user's limit, always. The line every other policy is measured against.
#pragma once

#include "policy/policy.h"

namespace cgphase {

class StaticPolicy final : public Policy {
 public:
  void observe(const Observation& observation) override;
  Allocation allocate(const Limits& original, const HostCapacity& host) const override;
  nlohmann::json learned() const override;

 private:
  double samples_ = 0;
};

}  // namespace cgphase
