#include "policy/demand_bound.h"

#include <algorithm>
#include <cmath>

#include "policy/policy.h"

namespace cgphase {
namespace {

// Less than a window saw too few steps to have met one of those that begin a phase.
constexpr double kStepSamples = NestedWindows::kShortest;

}  // namespace

double widened(double peak, double samples, double risk) {
  return peak * (1 + 0.5 / (samples * std::sqrt(risk)));
}

DemandBound::DemandBound(double risk, bool drifts)
    : risk_(risk), drifts_(drifts), levels_(risk), steps_(risk) {}

void DemandBound::add(double demand, double interval_seconds) {
  if (levels_.count() > 0 && interval_seconds > 0) {
    const double step = demand - last_;
    if (drifts_) steps_.add(step);
    rise_per_second_ = std::max(rise_per_second_, step / std::max(1.0, interval_seconds));
  }
  levels_.add(demand);
  last_ = demand;
  peak_ = std::max(peak_, demand);
}

void DemandBound::add_rises(Ahead& ahead) const {
  constexpr double kAhead = kAheadSamples;
  const double factor = std::sqrt(1 / risk_ - 1);
  for (const NestedWindows::Reading& steps : steps_.readings()) {
    const double next = last_ + std::max(0.0, steps.mean + factor * steps.deviation);
    const double coming =
        last_ + std::max(0.0, kAhead * steps.mean + std::sqrt(kAhead) * factor * steps.deviation);
    ahead.next = std::min(ahead.next, next);
    ahead.coming = std::min(ahead.coming, std::max(next, coming));
    if (steps.samples < kStepSamples) continue;
    const double largest =
        last_ + widened(std::max(0.0, steps.top), steps.samples, risk_);
    ahead.next = std::min(ahead.next, largest);
    ahead.coming = std::min(ahead.coming, largest);
  }
}

std::optional<DemandBound::Ahead> DemandBound::ahead() const {
  if (levels_.count() < kWarmUpSamples) return std::nullopt;
  std::optional<Ahead> ahead;
  for (const NestedWindows::Reading& level : levels_.readings()) {
    const double bound = widened(level.top, level.samples, risk_);
    if (!ahead || bound < ahead->next) ahead = {bound, bound};
  }
  if (drifts_ && steps_.count() >= kWarmUpSamples / 2) add_rises(*ahead);
  ahead->next = std::max(ahead->next, last_);
  ahead->coming = std::max(ahead->coming, ahead->next);
  return ahead;
}

}  // namespace cgphase
