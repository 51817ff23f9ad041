#include "policy/nested_windows.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace cgphase {

void NestedWindows::add(double value) {
  Block& block = blocks_[count_ / kBlock % kBlocks];
  if (count_ % kBlock == 0) block = {};
  block.largest = block.samples == 0 ? value : std::max(block.largest, value);
  block.sum += value;
  block.squares += value * value;
  block.samples += 1;
  if (values_.size() < kKept) values_.push_back(static_cast<float>(value));
  else values_[count_ % kKept] = static_cast<float>(value);
  count_ += 1;
}

// The largest samples of a window that grows into the past, falling.
class NestedWindows::Largest {
 public:
  explicit Largest(const NestedWindows& windows) : windows_(windows) {}
  // The largest of the newest `samples` after leaving out floor(samples x risk) of them; `samples`
  // does not fall from one call to the next.
  double after_leaving_out(std::size_t samples) {
    const std::size_t kept = left_out(kKept) + 1;
    for (; seen_ < samples; ++seen_) {
      const float value = windows_.values_[(windows_.count_ - 1 - seen_) % kKept];
      if (largest_.size() == kept && value <= largest_.back()) continue;
      if (largest_.size() == kept) largest_.pop_back();
      largest_.insert(std::upper_bound(largest_.begin(), largest_.end(), value, std::greater<>()),
                      value);
    }
    return static_cast<double>(largest_[std::min(left_out(samples), largest_.size() - 1)]);
  }

 private:
  std::size_t left_out(std::size_t samples) const {
    return static_cast<std::size_t>(static_cast<double>(samples) * windows_.risk_);
  }
  const NestedWindows& windows_;
  std::vector<float> largest_;
  std::size_t seen_ = 0;
};

std::vector<NestedWindows::Reading> NestedWindows::readings() const {
  std::vector<Reading> readings;
  if (count_ == 0) return readings;
  readings.reserve(kWindows);
  const std::size_t newest = (count_ - 1) / kBlock;
  std::size_t wanted = kShortest / kBlock, samples = 0;  // whole blocks, besides the newest
  double largest = 0, sum = 0, squares = 0;
  Largest top(*this);
  for (std::size_t back = 0; back < kBlocks && back <= newest; ++back) {
    const Block& block = blocks_[(newest - back) % kBlocks];
    largest = back == 0 ? block.largest : std::max(largest, block.largest);
    sum += block.sum;
    squares += block.squares;
    samples += block.samples;
    if (back != wanted && back != newest) continue;
    const double n = static_cast<double>(samples), mean = sum / n;
    const bool all = n * risk_ < 1;  // none is left out
    readings.push_back({n, all ? largest : top.after_leaving_out(samples), mean,
                        std::sqrt(std::max(0.0, squares / n - mean * mean))});
    wanted *= 2;
  }
  return readings;
}

}  // namespace cgphase
