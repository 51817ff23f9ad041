#include "policy/phase/demand_bound.h"

#include <algorithm>
#include <cmath>

#include "policy/policy.h"

namespace cgphase {
namespace {

constexpr std::size_t kFewestSteps = NestedWindows::kShortest - 1;  // those of a window of levels

}  // namespace

double widened(double peak, double samples, double risk) {
  return peak * (1 + 0.5 / (samples * std::sqrt(risk)));
}

void DemandBound::add(double demand, double interval_seconds) {
  if (levels_.count() > 0 && interval_seconds > 0) {
    const double step = demand - last_;
    if (drifts_) steps_.add(step);
    const double seconds = interval_seconds <= kAtOnceSeconds ? 1 : interval_seconds;
    rise_per_second_ = std::max(rise_per_second_, step / seconds);
  }
  levels_.add(demand);
  last_ = demand;
  peak_ = std::max(peak_, demand);
}

void DemandBound::add_rises(double risk, Ahead& ahead) {
  constexpr double kAhead = kAheadSamples;
  const double factor = std::sqrt(1 / risk - 1);
  for (std::size_t i = 0, windows = steps_.windows(); i < windows; ++i) {
    const double mean = steps_.mean(i), spread = factor * steps_.deviation(i);
    const double next = last_ + std::max(0.0, mean + spread);
    const double coming = last_ + std::max(0.0, kAhead * mean + std::sqrt(kAhead) * spread);
    ahead.next = std::min(ahead.next, next);
    ahead.coming = std::min(ahead.coming, std::max(next, coming));
    const double largest =
        last_ + widened(std::max(0.0, steps_.top(i, risk)), steps_.samples(i), risk);
    ahead.next = std::min(ahead.next, largest);
    ahead.coming = std::min(ahead.coming, largest);
  }
}

std::optional<DemandBound::Ahead> DemandBound::ahead(double risk) {
  if (levels_.count() < kWarmUpSamples) return std::nullopt;
  std::optional<Ahead> ahead;
  for (std::size_t i = 0, windows = levels_.windows(); i < windows; ++i) {
    const double bound = widened(levels_.top(i, risk), levels_.samples(i), risk);
    if (!ahead || bound < ahead->next) ahead = {bound, bound};
  }
  if (steps_.count() >= kFewestSteps) add_rises(risk, *ahead);
  ahead->next = std::max(ahead->next, last_);
  ahead->coming = std::max(ahead->coming, ahead->next);
  return ahead;
}

}  // namespace cgphase
