#include "policy/baselines/static_policy.h"

#include "policy/ceiling.h"

namespace cgphase {

void StaticPolicy::observe(const Observation&) { samples_ += 1; }

Recommendation StaticPolicy::allocate(const Limits& original, const HostCapacity& host) const {
  Recommendation allocation;
  allocation.cpu = Cores{cpu_ceiling_cores(original, host)};
  allocation.memory = original.memory_bytes().value_or(host.memory);
  allocation.reason = Reason::window_statistics;
  allocation.cpu_sample_count = allocation.memory_sample_count = samples_;
  return allocation;
}

}  // namespace cgphase
