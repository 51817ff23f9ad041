#include "policy/phase/held_limit.h"

#include <algorithm>
#include <cmath>

namespace cgphase {
namespace {

// A lowering costs a write and may come too early: that is taken to be so four times in a thousand.
constexpr double kLowerRisk = 0.004;
// And more in a long run, so that the number of writes grows more slowly than the run does.
constexpr double kLowerCostShare = 1.0 / 500;
// It waits this share, divided by the accepted risk, in samples: one at 1 %, ten as shipped.
constexpr double kHoldRisk = 0.01;
// A raise is worth less: nothing has to be proved again after it.
constexpr double kRaiseCost = 0.05;

}  // namespace

HeldLimit::HeldLimit(bool steady, double risk)
    : steady_(steady), lower_cost_(kLowerRisk / risk),
      hold_samples_(static_cast<std::size_t>(
          std::clamp<double>(std::ceil(kHoldRisk / risk), 1, kMostHoldSamples))) {}

// A steady growth asks for a raise again and again: the one that costs least in all, writes and
// headroom together, is the economic order quantity (Harris 1913).
void HeldLimit::raise(double next, double coming) {
  const double samples = static_cast<double>(std::max<std::size_t>(1, since_raise_));
  const double growth = (next - *level_) / samples;
  level_ = std::max(next, coming);
  if (steady_)
    *level_ += std::min(std::sqrt(2 * kRaiseCost * growth * *level_), kRaiseCost * *level_);
}

double HeldLimit::recent() const {
  double highest = 0;
  for (std::size_t back = 1; back <= std::min(hold_samples_, samples_); ++back)
    highest = std::max(highest, comings_[(samples_ - back) % kMostHoldSamples]);
  return highest;
}

// Lowers once the wait has cost as much as the lowering does (the rule of the ski rental: never
// more than twice the cost of knowing the future).
void HeldLimit::update(double next, double coming) {
  comings_[samples_ % kMostHoldSamples] = coming;
  samples_ += 1;
  since_change_ += 1;
  since_raise_ += 1;
  if (!level_) {
    level_ = coming;
  } else if (next > *level_) {
    raise(next, coming);
    since_raise_ = 0;
  } else {
    // Where already the newest is no lower nothing was wasted.
    const double wanted = coming < *level_ ? recent() : coming;
    wasted_ = wanted < *level_ ? wasted_ + (*level_ - wanted) / *level_ : 0;
    const double cost = lower_cost_ + kLowerCostShare * static_cast<double>(samples_);
    if (wasted_ < cost || since_change_ < hold_samples_) return;
    level_ = wanted;
  }
  since_change_ = 0;
  wasted_ = 0;
}

}  // namespace cgphase
