#include "model/phase_path.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "base/check.h"
#include "model/centroids.h"
#include "model/crbm_fixed.h"

namespace cgphase {
namespace {

constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
constexpr int kUnitShift = 2 * kActivationShift;

// Larger than any margin, so that clamping an error to it never makes a phase certain.
constexpr std::int64_t kLargestError = std::int64_t{1} << 40;
constexpr std::int64_t kLargestDistance = std::int64_t{kMaxHidden} << kUnitShift;
static_assert(kMaxSwitchCost <= kMaxHidden && kLargestError > 2 * kLargestDistance);

std::int64_t rounded_up(double error_bound) {
  static_assert(kUnitShift == 30);
  const double units = std::ceil(error_bound * 0x1p30);
  if (!(units < static_cast<double>(kLargestError))) return kLargestError;
  return static_cast<std::int64_t>(units);
}

// The smallest of the other values minus the one at `chosen`; kFar if there are no others.
std::int64_t lead(std::span<const std::int64_t> values, std::size_t chosen) {
  std::int64_t second = kFar;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (i != chosen) second = std::min(second, values[i]);
  return second == kFar ? kFar : second - values[chosen];
}

}  // namespace

PhasePath::PhasePath(const Centroids& centroids, double switch_cost)
    : switch_cost_(std::llround(std::ldexp(switch_cost, kUnitShift))),
      parents_(centroids.parents) {
  CHECK_INVARIANT(centroids.count >= 1 && centroids.count <= kMaxPhases);
  CHECK_INVARIANT(switch_cost_ >= 0 && switch_cost_ <= kLargestDistance);
  for (int i = 0; i < centroids.count; ++i)
    if (parents_.empty() || parents_[static_cast<std::size_t>(i)] < 0) top_.push_back(i);
}

PhasePath::Step PhasePath::step(std::span<const std::int64_t> distances, double error_bound) {
  std::int64_t costs[kMaxPhases], near[kMaxPhases];
  const std::size_t count = top_.size();
  for (std::size_t i = 0; i < count; ++i) {
    near[i] = distances[static_cast<std::size_t>(top_[i])];
    costs[i] = carried_[i] + near[i];
  }
  const auto best = static_cast<std::size_t>(std::min_element(costs, costs + count) - costs);
  const std::int64_t least = costs[best];
  const std::int64_t path_margin = lead({costs, count}, best);
  const std::int64_t step_error = rounded_up(error_bound);
  const std::int64_t path_error = step_error + carried_error_;

  for (std::size_t i = 0; i < count; ++i) carried_[i] = std::min(costs[i] - least, switch_cost_);
  const bool all_lag = path_margin >= switch_cost_ + path_error;
  carried_error_ = all_lag ? 0 : std::min(path_error, 2 * switch_cost_);

  CentroidChoice<std::int64_t> choice{top_[best], near[best], kFar};
  if (!parents_.empty()) choose_part(distances, std::span<const int>(parents_), choice);
  Step result{choice.index, choice.distance, std::min(lead({near, count}, best), choice.margin),
              path_margin > path_error && choice.margin > step_error};
  if (result.margin == kFar) result.margin = 0;
  return result;
}

void PhasePath::reset() {
  carried_.fill(0);
  carried_error_ = 0;
}

}  // namespace cgphase
