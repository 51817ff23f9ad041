#include "policy/baselines/window_statistic.h"

#include <algorithm>
#include <cmath>

namespace cgphase {

void WindowStatistic::add(double seconds, double value) {
  if (!std::isfinite(value)) return;
  if (samples_.size() >= most_samples_) drop_oldest();
  if (samples_.empty()) {
    reference_ = value;
    sum_ = squares_ = 0;
  }
  maximum_.add(first_ + static_cast<double>(samples_.size()), value);
  samples_.push_back({seconds, value});
  sum_ += value - reference_;
  squares_ += (value - reference_) * (value - reference_);
}

void WindowStatistic::drop_until(double seconds) {
  while (!samples_.empty() && samples_.front().seconds <= seconds) drop_oldest();
}

void WindowStatistic::drop_oldest() {
  const double difference = samples_.front().value - reference_;
  sum_ -= difference;
  squares_ -= difference * difference;
  maximum_.drop_until(first_);
  first_ += 1;
  samples_.pop_front();
}

std::optional<double> WindowStatistic::mean_plus_deviations(double factor) const {
  if (samples_.empty()) return std::nullopt;
  const double n = static_cast<double>(samples_.size());
  const double mean = sum_ / n;
  const double variance = std::max(squares_ / n - mean * mean, 0.0);
  return reference_ + mean + factor * std::sqrt(variance);
}

}  // namespace cgphase
