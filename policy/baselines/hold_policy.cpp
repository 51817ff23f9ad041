#include "policy/baselines/hold_policy.h"

#include <algorithm>

#include "policy/ceiling.h"

namespace cgphase {
HoldPolicy::Held::Held(const PolicyValues& values)
    : quantile_(values.at("quantile")), margin_(values.at("margin")), drop_(values.at("drop")),
      hold_(values.count("hold")), samples_(static_cast<std::size_t>(values.count("window"))) {}

HoldPolicy::HoldPolicy(const PolicyValues& values) : cpu_(values), memory_(values) {}

void HoldPolicy::Held::add(double value) {
  samples_.add(value);
  if (!samples_.enough()) return;
  since_change_ += 1;
  const double wanted = margin_ * std::max(samples_.quantile(quantile_), samples_.last());
  const bool drop = level_ && wanted < *level_ * (1 - drop_) &&
                    since_change_ >= hold_;
  if (level_ && wanted <= *level_ && !drop) return;
  level_ = wanted;
  since_change_ = 0;
}

void HoldPolicy::observe(const Observation& observation) {
  if (observation.cpu_cores) cpu_.add(*observation.cpu_cores);
  if (observation.memory_need_bytes) memory_.add(*observation.memory_need_bytes);
}

Recommendation HoldPolicy::allocate(const Limits& original, const HostCapacity& host) const {
  Recommendation allocation;
  if (cpu_.level()) allocation.cpu = capped_cores(*cpu_.level(), original, host);
  if (memory_.level()) allocation.memory = capped_bytes(*memory_.level(), original, host);
  allocation.reason = Reason::window_statistics;
  allocation.cpu_sample_count = cpu_.count();
  allocation.memory_sample_count = memory_.count();
  return allocation;
}

}  // namespace cgphase
