#include "policy/hold_policy.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "policy/ceiling.h"

namespace cgphase {
namespace {

constexpr double kQuantile = 0.95;
constexpr double kMargin = 1.1;
constexpr double kSmallestDrop = 0.10;
constexpr int kHoldSamples = 10;

}  // namespace

void HoldPolicy::Held::add(double value) {
  samples_.add(value);
  if (!samples_.enough()) return;
  since_change_ += 1;
  const double wanted = kMargin * std::max(samples_.quantile(kQuantile), samples_.last());
  const bool drop = level_ && wanted < *level_ * (1 - kSmallestDrop) &&
                    since_change_ >= kHoldSamples;
  if (level_ && wanted <= *level_ && !drop) return;
  level_ = wanted;
  since_change_ = 0;
}

void HoldPolicy::observe(const Observation& observation) {
  if (observation.cpu_cores) cpu_.add(*observation.cpu_cores);
  if (observation.memory_need_bytes) memory_.add(*observation.memory_need_bytes);
}

Allocation HoldPolicy::allocate(const Limits& original, const HostCapacity& host) const {
  Allocation allocation;
  if (cpu_.level()) allocation.cpu = capped_cores(*cpu_.level(), original, host);
  if (memory_.level()) allocation.memory = capped_bytes(*memory_.level(), original, host);
  allocation.reason = Reason::window_statistics;
  allocation.cpu_sample_count = cpu_.count();
  allocation.memory_sample_count = memory_.count();
  return allocation;
}

nlohmann::json HoldPolicy::learned() const { return nullptr; }

}  // namespace cgphase
