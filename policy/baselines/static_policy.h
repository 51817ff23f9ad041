// `static` always recommends the user's limit. All other policies are compared with it.
#pragma once

#include "policy/policy.h"

namespace cgphase {

class StaticPolicy final : public Policy {
 public:
  void observe(const Observation& observation) override;
  Recommendation allocate(const Limits& original, const HostCapacity& host) const override;

 private:
  double samples_ = 0;
};

}  // namespace cgphase
