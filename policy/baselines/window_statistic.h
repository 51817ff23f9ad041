// Maximum, mean and deviation of a window of time over one measure: what is coming for an oracle,
// what was for the adaptive policies. O(1) amortised per sample.
#pragma once

#include <cstddef>
#include <deque>
#include <limits>
#include <optional>

#include "policy/phase/sliding_maximum.h"

namespace cgphase {

class WindowStatistic {
 public:
  // Of who has no end of samples to come: an hour at ten a second.
  static constexpr std::size_t kMostSamples = 36'000;
  // Of who has all of them in memory anyway.
  static constexpr std::size_t kAnySamples = std::numeric_limits<std::size_t>::max();

  WindowStatistic() = default;
  // One past `most_samples` pushes the oldest out.
  explicit WindowStatistic(std::size_t most_samples) : most_samples_(most_samples) {}

  // Times ascend. A value that is not finite is ignored.
  void add(double seconds, double value);
  // Forgets what is of `seconds` or earlier.
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
  SlidingMaximum maximum_;  // by number of the sample
  double first_ = 0;        // number of the oldest sample
  // Of the differences from reference_, so that equal values deviate by exactly nothing.
  double reference_ = 0, sum_ = 0, squares_ = 0;
};

}  // namespace cgphase
