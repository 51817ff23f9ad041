#include "policy/held_limit.h"

#include <algorithm>
#include <cmath>

namespace cgphase {
namespace {

// Lower once the wait has cost as much as a write is worth (the rule of the ski rental: never more
// than twice the cost of knowing the future). A write is worth three samples of the limit.
constexpr double kLowerCost = 3;
// And more in a long run, so that the number of writes grows more slowly than the run does.
constexpr double kLowerCostShare = 1.0 / 500;
// A raise is worth less: nothing has to be proved again after it.
constexpr double kRaiseCost = 0.05;

}  // namespace

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
  return *std::max_element(comings_.begin(), comings_.end());
}

void HeldLimit::update(double next, double coming) {
  comings_[samples_ % kHoldSamples] = coming;
  samples_ += 1;
  since_change_ += 1;
  since_raise_ += 1;
  if (!level_) {
    level_ = coming;
  } else if (next > *level_) {
    raise(next, coming);
    since_raise_ = 0;
  } else {
    const double wanted = recent();
    wasted_ = wanted < *level_ ? wasted_ + (*level_ - wanted) / *level_ : 0;
    const double cost = kLowerCost + kLowerCostShare * static_cast<double>(samples_);
    if (wasted_ < cost || since_change_ < kHoldSamples) return;
    level_ = wanted;
  }
  since_change_ = 0;
  wasted_ = 0;
}

}  // namespace cgphase
