// The last samples of one measure, for the policies that know no phases.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>

namespace cgphase {

class RecentSamples {
 public:
  static constexpr std::size_t kWindow = 60;
  static constexpr std::size_t kFewest = 10;  // the warm-up of every window policy

  void add(double value) {
    values_[next_] = value;
    last_ = value;
    next_ = (next_ + 1) % kWindow;
    size_ = std::min(size_ + 1, kWindow);
  }
  bool enough() const { return size_ >= kFewest; }
  std::size_t size() const { return size_; }
  double last() const { return last_; }

  // Mean plus `factor` population standard deviations.
  double mean_plus_deviations(double factor) const {
    double sum = 0, squares = 0;
    const double n = static_cast<double>(size_);
    for (std::size_t i = 0; i < size_; ++i) sum += values_[i];
    const double mean = sum / n;
    for (std::size_t i = 0; i < size_; ++i) squares += (values_[i] - mean) * (values_[i] - mean);
    return mean + factor * std::sqrt(squares / n);
  }
  // Nearest rank: the smallest sample that `share` of all do not pass.
  double quantile(double share) const {
    std::array<double, kWindow> sorted = values_;
    const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(size_);
    std::sort(sorted.begin(), end);
    const double rank = std::ceil(share * static_cast<double>(size_));
    return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
  }

 private:
  std::array<double, kWindow> values_{};
  std::size_t next_ = 0, size_ = 0;
  double last_ = 0;
};

}  // namespace cgphase
