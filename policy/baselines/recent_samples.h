// The last samples of one measure, for policies that ignore phases.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/check.h"
#include "policy/policy.h"

namespace cgphase {

// Adding a sample costs O(window) moves of memory and no sort.
class RecentSamples {
 public:
  static constexpr std::size_t kMostSamples = 3600;

  // Keeps `window` samples: from kWarmUpSamples to kMostSamples.
  explicit RecentSamples(std::size_t window) : window_(window) {
    CHECK_INVARIANT(window >= kWarmUpSamples && window <= kMostSamples);
  }

  // A value that is not finite is ignored.
  void add(double value) {
    if (!std::isfinite(value)) return;
    if (values_.size() < window_) {
      values_.push_back(value);
    } else {
      sorted_.erase(std::lower_bound(sorted_.begin(), sorted_.end(), values_[next_]));
      values_[next_] = value;
    }
    sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), value), value);
    last_ = value;
    next_ = (next_ + 1) % window_;
  }
  bool enough() const { return size() >= kWarmUpSamples; }
  std::size_t size() const { return values_.size(); }
  double last() const { return last_; }

  // Mean plus `factor` population standard deviations.
  double mean_plus_deviations(double factor) const {
    double sum = 0, squares = 0;
    const double n = static_cast<double>(size());
    for (const double value : values_) sum += value;
    const double mean = sum / n;
    for (const double value : values_) squares += (value - mean) * (value - mean);
    return mean + factor * std::sqrt(squares / n);
  }
  // Nearest rank: the smallest sample that is at least as large as `share` of all samples.
  double quantile(double share) const {
    const double rank = std::ceil(share * static_cast<double>(size()));
    return sorted_[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
  }

 private:
  std::size_t window_;
  std::vector<double> values_;  // a ring; once it is full, next_ is the oldest
  std::vector<double> sorted_;  // the same, ascending
  std::size_t next_ = 0;
  double last_ = 0;
};

}  // namespace cgphase
