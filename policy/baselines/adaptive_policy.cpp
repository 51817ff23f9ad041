#include "policy/baselines/adaptive_policy.h"

#include <algorithm>

#include "policy/ceiling.h"

namespace cgphase {

void AdaptivePolicy::observe(const Observation& observation) {
  const double now = seconds_at(observation);
  const auto follow = [&](Measure& measure, const std::optional<double>& value) {
    if (value) {
      measure.window.add(now, *value);
      measure.seen = std::min(measure.seen + 1, kWarmUpSamples);
    }
    measure.window.drop_until(now - window_seconds_);
  };
  follow(cpu_, observation.cpu_cores);
  follow(memory_, observation.memory_need_bytes);
}

std::optional<double> AdaptivePolicy::wanted(const Measure& measure) const {
  if (measure.seen < kWarmUpSamples) return std::nullopt;
  return deviations_ ? measure.window.mean_plus_deviations(*deviations_)
                     : measure.window.maximum();
}

Recommendation AdaptivePolicy::allocate(const Limits& original, const HostCapacity& host) const {
  Recommendation allocation;
  allocation.reason = Reason::window_statistics;
  if (const auto cpu = wanted(cpu_)) allocation.cpu = capped_cores(*cpu, original, host);
  if (const auto memory = wanted(memory_))
    allocation.memory = capped_bytes(*memory, original, host);
  allocation.cpu_sample_count = static_cast<double>(cpu_.window.size());
  allocation.memory_sample_count = static_cast<double>(memory_.window.size());
  return allocation;
}

Result<std::unique_ptr<Policy>> make_adaptive_max(const PolicyArgs& making) {
  return std::make_unique<AdaptivePolicy>(making.environment.window_seconds, std::nullopt);
}

Result<std::unique_ptr<Policy>> make_adaptive_2sd(const PolicyArgs& making) {
  return std::make_unique<AdaptivePolicy>(making.environment.window_seconds,
                                          making.values.at("deviations"));
}

}  // namespace cgphase
