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

// The largest sample after leaving out floor(samples x risk) of them.
double NestedWindows::top_of(std::size_t samples, double largest) const {
  const auto left_out = static_cast<std::size_t>(static_cast<double>(samples) * risk_);
  if (left_out == 0) return largest;
  std::array<float, kKept> sorted{};
  for (std::size_t i = 0; i < samples; ++i) sorted[i] = values_[(count_ - 1 - i) % kKept];
  const auto rank = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(left_out, samples - 1));
  std::nth_element(sorted.begin(), rank, sorted.begin() + static_cast<std::ptrdiff_t>(samples),
                   std::greater<>());
  return static_cast<double>(*rank);
}

std::vector<NestedWindows::Reading> NestedWindows::readings() const {
  std::vector<Reading> readings;
  if (count_ == 0) return readings;
  readings.reserve(kWindows);
  const std::size_t newest = (count_ - 1) / kBlock;
  std::size_t wanted = kShortest / kBlock, samples = 0;  // whole blocks, besides the newest
  double largest = 0, sum = 0, squares = 0;
  for (std::size_t back = 0; back < kBlocks && back <= newest; ++back) {
    const Block& block = blocks_[(newest - back) % kBlocks];
    largest = back == 0 ? block.largest : std::max(largest, block.largest);
    sum += block.sum;
    squares += block.squares;
    samples += block.samples;
    if (back != wanted && back != newest) continue;
    const double n = static_cast<double>(samples), mean = sum / n;
    readings.push_back({n, top_of(samples, largest), mean,
                        std::sqrt(std::max(0.0, squares / n - mean * mean))});
    wanted *= 2;
  }
  return readings;
}

}  // namespace cgphase
