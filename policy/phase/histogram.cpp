#include "policy/phase/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "policy/phase/power_of_two.h"

namespace cgphase {
namespace {

// Weights are relative to a reference time. It is moved before they could overflow.
constexpr double kMaxExponent = 64;
// Far above any sum of weights in a run, and far below an overflow.
constexpr double kMaxWeight = 1e18;

// 1.05^i by repeated multiplication. The C library's pow depends on the processor.
constexpr auto kEdges = [] {
  std::array<double, DecayingHistogram::kMaxBuckets> edges{};
  double value = 1;
  for (double& edge : edges) {
    edge = value;
    value *= DecayingHistogram::kGrowth;
  }
  return edges;
}();

// A number from 1 on belongs to a cell, given by its exponent and the first bits of its fraction. A
// cell spans at most 1/16 of its value, so it contains few edges.
constexpr int kCellBits = 4;
constexpr std::size_t cell_of(double scaled) {
  return static_cast<std::size_t>((std::bit_cast<std::uint64_t>(scaled) >> (52 - kCellBits)) -
                                  (std::uint64_t{1023} << kCellBits));
}
// For each cell, the first edge above its start.
constexpr auto kFirstAbove = [] {
  std::array<std::uint16_t, cell_of(kEdges.back()) + 1> first{};
  std::uint16_t edge = 0;
  for (std::size_t cell = 0; cell < first.size(); ++cell) {
    while (edge < kEdges.size() && cell_of(kEdges[edge]) < cell) ++edge;
    first[cell] = edge;
  }
  return first;
}();

bool in_bounds(double value) { return value >= 0 && value <= kMaxWeight; }

std::unexpected<Error> refuse_histogram(const char* why) {
  return failure(ErrorKind::invalid, std::string("histogram refused: ") + why);
}

}  // namespace

DecayingHistogram::DecayingHistogram(const Shape& shape) : shape_(shape) {
  CHECK_INVARIANT(shape.first > 0 && shape.half_life_seconds > 0);
}

int DecayingHistogram::bucket_of(double value) const {
  const double scaled = value / shape_.first;
  if (!(scaled < kEdges.back())) return kMaxBuckets - 1;
  if (scaled < 1) return 0;
  std::size_t above = kFirstAbove[cell_of(scaled)];
  while (kEdges[above] <= scaled) ++above;
  return static_cast<int>(above);
}

void DecayingHistogram::scale(double factor) {
  for (double& weight : weights_) weight *= factor;
  total_ *= factor;
}

void DecayingHistogram::put(int bucket, double weight) {
  const auto index = static_cast<std::size_t>(bucket);
  if (weights_.empty()) lowest_ = index;
  // Allocates exactly as much as needed: a container has many histograms, and their range soon
  // settles.
  if (index < lowest_) {
    weights_.reserve(weights_.size() + lowest_ - index);
    weights_.insert(weights_.begin(), lowest_ - index, 0.0);
    lowest_ = index;
  }
  if (weights_.size() <= index - lowest_) {
    weights_.reserve(index - lowest_ + 1);
    weights_.resize(index - lowest_ + 1, 0.0);
  }
  weights_[index - lowest_] += weight;
  total_ += weight;
}

void DecayingHistogram::add(double value, double weight, double time_seconds) {
  if (!(std::isfinite(value) && value >= 0) || !(std::isfinite(weight) && weight > 0)) return;
  if (!std::isfinite(time_seconds)) return;
  if (!reference_) reference_ = latest_ = time_seconds;
  latest_ = std::max(*latest_, time_seconds);
  double exponent = (*latest_ - *reference_) / shape_.half_life_seconds;
  if (exponent > kMaxExponent) {
    scale(power_of_two(-exponent));
    reference_ = latest_;
    exponent = 0;
  }
  put(bucket_of(value), weight * power_of_two(exponent));
  count_ += 1;
}

std::optional<double> DecayingHistogram::quantile(double share) const {
  if (!(total_ > 0)) return std::nullopt;
  double below = 0;
  std::size_t last = 0;  // highest bucket with any weight, in case rounding stops below `share`
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (!(weights_[i] > 0)) continue;
    below += weights_[i];
    last = lowest_ + i;
    if (below >= share * total_) break;
  }
  return shape_.first * kEdges[last];
}

double DecayingHistogram::to_latest() const {
  return reference_ ? power_of_two((*reference_ - *latest_) / shape_.half_life_seconds) : 1;
}

std::optional<double> DecayingHistogram::peak(double least_weight) const {
  const double least = least_weight / to_latest();
  for (std::size_t i = weights_.size(); i > 0; --i)
    if (weights_[i - 1] >= least) return shape_.first * kEdges[lowest_ + i - 1];
  return std::nullopt;
}

double DecayingHistogram::weight_between(double from, double to) const {
  const auto first = static_cast<std::size_t>(bucket_of(std::max(from, 0.0)));
  const auto last = static_cast<std::size_t>(bucket_of(std::max(to, 0.0)));
  double sum = 0;
  for (std::size_t i = std::max(first, lowest_); i <= last && i - lowest_ < weights_.size(); ++i)
    sum += weights_[i - lowest_];
  return sum * to_latest();
}

double DecayingHistogram::total_weight() const {
  return weight_between(0, shape_.first * kEdges.back());
}

void DecayingHistogram::merge(const DecayingHistogram& other, double factor) {
  CHECK_INVARIANT(shape_ == other.shape_);
  const double to_mine = factor * other.to_latest() / to_latest();
  for (std::size_t i = 0; i < other.weights_.size(); ++i)
    if (other.weights_[i] > 0)
      put(static_cast<int>(other.lowest_ + i), other.weights_[i] * to_mine);
  count_ += other.count_ * factor;
}

std::vector<DecayingHistogram::Bucket> DecayingHistogram::buckets() const {
  std::vector<Bucket> buckets;
  const double age = to_latest();
  for (std::size_t i = 0; i < weights_.size(); ++i)
    if (weights_[i] > 0) buckets.push_back({static_cast<int>(lowest_ + i), weights_[i] * age});
  return buckets;
}

Result<DecayingHistogram> DecayingHistogram::from_buckets(const Shape& shape, double count,
                                                          const std::vector<Bucket>& buckets) {
  DecayingHistogram histogram(shape);
  int previous = -1;
  for (const Bucket& bucket : buckets) {
    if (bucket.index <= previous || bucket.index >= kMaxBuckets)
      return refuse_histogram("buckets are out of range or not ascending");
    if (!in_bounds(bucket.weight)) return refuse_histogram("a weight is negative or too large");
    previous = bucket.index;
    if (bucket.weight > 0) histogram.put(previous, bucket.weight);
  }
  histogram.count_ = count;
  if (Status good = histogram.check(); !good) return std::unexpected(good.error());
  return histogram;
}

DecayingHistogram DecayingHistogram::without_times() const {
  DecayingHistogram stored(shape_);
  for (const Bucket& bucket : buckets())
    if (bucket.weight > 0) stored.put(bucket.index, bucket.weight);
  stored.count_ = count_;
  return stored;
}

DecayingHistogram DecayingHistogram::with_half_life(double seconds) const {
  CHECK_INVARIANT(seconds > 0);
  DecayingHistogram other = without_times();
  other.shape_.half_life_seconds = seconds;
  return other;
}

Status DecayingHistogram::check() const {
  if (!in_bounds(count_)) return refuse_histogram("the number of samples is out of range");
  const double age = to_latest();
  for (const double weight : weights_)
    if (!in_bounds(weight * age)) return refuse_histogram("a weight is too large");
  return {};
}

}  // namespace cgphase
