#include "policy/phase/hysteresis.h"

#include <algorithm>
#include <cmath>

namespace cgphase {
namespace {

// A lowering costs a write and may be too early. It is assumed to be too early four times in a
// thousand.
constexpr double kLowerRisk = 0.004;
// The cost grows during a long run, so that writes grow more slowly than the run.
constexpr double kLowerCostShare = 1.0 / 500;
// The wait in samples is this share divided by the accepted risk: one at 1 %, ten by default.
constexpr double kHoldRisk = 0.01;
// A raise costs less, because nothing has to be proved again after it.
constexpr double kRaiseCost = 0.05;

}  // namespace

Hysteresis::Hysteresis(bool steady, double risk)
    : steady_(steady), lower_cost_(kLowerRisk / risk),
      hold_samples_(static_cast<std::size_t>(
          std::clamp<double>(std::ceil(kHoldRisk / risk), 1, kMostHoldSamples))) {}

// Steady growth needs repeated raises. The raise with the lowest total cost of writes and headroom
// is the economic order quantity (Harris 1913).
void Hysteresis::raise(double next, double coming) {
  const double samples = static_cast<double>(std::max<std::size_t>(1, since_raise_));
  const double growth = (next - *level_) / samples;
  level_ = std::max(next, coming);
  if (steady_)
    *level_ += std::min(std::sqrt(2 * kRaiseCost * growth * *level_), kRaiseCost * *level_);
}

double Hysteresis::recent() const {
  double highest = 0;
  for (std::size_t back = 1; back <= std::min(hold_samples_, samples_); ++back)
    highest = std::max(highest, comings_[(samples_ - back) % kMostHoldSamples]);
  return highest;
}

// Lowers once waiting has cost as much as the lowering does. By the ski-rental rule the total cost
// is at most twice that of knowing the future.
void Hysteresis::update(double next, double coming) {
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
    // If the newest value is no lower, nothing was wasted.
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
