#include "policy/baselines/sliding_policy.h"

#include <algorithm>

#include "policy/ceiling.h"

namespace cgphase {
SlidingPolicy::SlidingPolicy(const PolicyValues& values)
    : deviations_(values.at("deviations")), above_(values.at("above")),
      cpu_(static_cast<std::size_t>(values.count("window"))), memory_(cpu_) {}

double SlidingPolicy::wanted(const RecentSamples& samples) const {
  return std::max(samples.mean_plus_deviations(deviations_), above_ * samples.last());
}

void SlidingPolicy::observe(const Observation& observation) {
  if (observation.cpu_cores) cpu_.add(*observation.cpu_cores);
  if (observation.memory_need_bytes) memory_.add(*observation.memory_need_bytes);
}

Recommendation SlidingPolicy::allocate(const Limits& original, const HostCapacity& host) const {
  Recommendation allocation;
  if (cpu_.enough()) allocation.cpu = capped_cores(wanted(cpu_), original, host);
  if (memory_.enough()) allocation.memory = capped_bytes(wanted(memory_), original, host);
  allocation.reason = Reason::window_statistics;
  allocation.cpu_sample_count = static_cast<double>(cpu_.size());
  allocation.memory_sample_count = static_cast<double>(memory_.size());
  return allocation;
}

}  // namespace cgphase
