// Maximum, mean and deviation of one measure over a time window. The oracles use it for the future,
// the adaptive policies for the past. O(1) amortised per sample.
#pragma once

#include <cstddef>
#include <deque>
#include <limits>
#include <optional>

#include "policy/phase/sliding_maximum.h"

namespace cgphase {

class WindowStatistic {
 public:
  // For an endless series: one hour at ten samples per second.
  static constexpr std::size_t kMostSamples = 36'000;
  // For a series that is in memory anyway.
  static constexpr std::size_t kAnySamples = std::numeric_limits<std::size_t>::max();

  WindowStatistic() = default;
  // If there are more than `most_samples`, the oldest is dropped.
  explicit WindowStatistic(std::size_t most_samples) : most_samples_(most_samples) {}

  // Times must ascend. A value that is not finite is ignored.
  void add(double seconds, double value);
  // Drops all samples with a time up to `seconds`.
  void drop_until(double seconds);

  std::size_t size() const { return samples_.size(); }
  // Absent while empty.
  std::optional<double> maximum() const { return maximum_.value(); }
  // Mean plus `factor` population standard deviations.
  std::optional<double> mean_plus_deviations(double factor) const;

 private:
  struct Sample {
    double seconds, value;
  };
  void drop_oldest();

  std::size_t most_samples_ = kMostSamples;
  std::deque<Sample> samples_;
  SlidingMaximum maximum_;  // by sample number
  double first_ = 0;        // number of the oldest sample
  // Sums of the differences from reference_, so that equal values have a deviation of exactly 0.
  double reference_ = 0, sum_ = 0, squares_ = 0;
};

}  // namespace cgphase
