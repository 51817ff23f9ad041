#include "policy/sliding_policy.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "policy/ceiling.h"

namespace cgphase {
namespace {

constexpr double kDeviations = 2;
constexpr double kAboveLast = 1.05;

double wanted(const RecentSamples& samples) {
  return std::max(samples.mean_plus_deviations(kDeviations), kAboveLast * samples.last());
}

}  // namespace

void SlidingPolicy::observe(const Observation& observation) {
  if (observation.cpu_cores) cpu_.add(*observation.cpu_cores);
  if (observation.memory_need_bytes) memory_.add(*observation.memory_need_bytes);
}

Allocation SlidingPolicy::allocate(const Limits& original, const HostCapacity& host) const {
  Allocation allocation;
  if (cpu_.enough()) allocation.cpu = capped_cores(wanted(cpu_), original, host);
  if (memory_.enough()) allocation.memory = capped_bytes(wanted(memory_), original, host);
  allocation.reason = Reason::window_statistics;
  allocation.cpu_sample_count = static_cast<double>(cpu_.size());
  allocation.memory_sample_count = static_cast<double>(memory_.size());
  return allocation;
}

nlohmann::json SlidingPolicy::learned() const { return nullptr; }

}  // namespace cgphase
