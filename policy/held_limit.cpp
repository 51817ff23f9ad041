#include "policy/held_limit.h"

#include <algorithm>
#include <cmath>

namespace cgphase {
namespace {

// The control `hold` waits as long.
constexpr int kHoldSamples = 10;
// Lower once the wait has cost as much as a write is worth (the rule of the ski rental: never more
// than twice the cost of knowing the future). A write is worth three samples of the limit.
constexpr double kLowerCost = 3;
// A raise is worth less: nothing has to be proved again after it.
constexpr double kRaiseCost = 0.2;

}  // namespace

// A steady growth asks for a raise again and again: the one that costs least in all, writes and
// headroom together, is the economic order quantity (Harris 1913).
void HeldLimit::raise(double next, double coming) {
  const double growth = (next - *level_) / std::max(1, since_raise_);
  level_ = std::max(next, coming);
  if (steady_)
    *level_ += std::min(std::sqrt(2 * kRaiseCost * growth * *level_), kRaiseCost * *level_);
}

void HeldLimit::update(double next, double coming) {
  since_change_ += 1;
  since_raise_ += 1;
  if (!level_) {
    level_ = coming;
  } else if (next > *level_) {
    raise(next, coming);
    since_raise_ = 0;
  } else {
    wasted_ = coming < *level_ ? wasted_ + (*level_ - coming) / *level_ : 0;
    if (wasted_ < kLowerCost || since_change_ < kHoldSamples) return;
    level_ = coming;
  }
  since_change_ = 0;
  wasted_ = 0;
}

}  // namespace cgphase
