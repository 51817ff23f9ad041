// A histogram in which old samples lose weight. Every statistic of a container uses it.
//
// The bucket edges grow by 5 %. Bucket 0 is [0, first), bucket i is [first * 1.05^(i-1), first *
// 1.05^i), and the last one has no upper edge. A sample's weight halves with every half-life
// (Autopilot, EuroSys'20, section 3.2). A value type; one thread. The same samples give the same
// bits on every machine.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/result.h"

namespace cgphase {

class DecayingHistogram {
 public:
  static constexpr int kMaxBuckets = 400;
  static constexpr double kGrowth = 1.05;

  // `first`: upper edge of the lowest bucket, in the unit of the values. Both must be above zero.
  struct Shape {
    double first = 0;
    double half_life_seconds = 0;
    friend bool operator==(const Shape&, const Shape&) = default;
  };
  explicit DecayingHistogram(const Shape& shape);
  const Shape& shape() const { return shape_; }

  // Ignores a value that is negative or not finite, and a weight that is not above zero. The time
  // is in seconds of any clock. A time before the latest one counts as the latest.
  void add(double value, double weight, double time_seconds);

  // Upper edge of the bucket in which `share` (0..1) of the weight is reached. It is never below
  // the true quantile and at most 5 % above it. Absent if empty.
  std::optional<double> quantile(double share) const;
  // Upper edge of the highest bucket whose weight at the latest add is at least `least_weight`.
  // Absent if there is none.
  std::optional<double> peak(double least_weight) const;
  // Weight of the buckets from that of `from` to that of `to`, both included.
  double weight_between(double from, double to) const;
  double total_weight() const;  // as of the latest add
  double count() const { return count_; }  // number of samples, without decay

  // Adds the weights of another histogram of the same shape, scaled by `factor`. The end times are
  // treated as equal.
  void merge(const DecayingHistogram& other, double factor);

  struct Bucket {
    int index = 0;
    double weight = 0;  // at the latest add
  };
  // What is stored of a histogram, with its shape and its count: the buckets with a weight,
  // ascending. Times are not stored. In a histogram from buckets the data end at the next add.
  std::vector<Bucket> buckets() const;
  // Errors: invalid (not ascending, out of bounds).
  static Result<DecayingHistogram> from_buckets(const Shape& shape, double count,
                                                const std::vector<Bucket>& buckets);
  // The same as from_buckets(shape(), count(), buckets()), without checks.
  DecayingHistogram without_times() const;
  // The same as without_times(), with another half-life.
  DecayingHistogram with_half_life(double seconds) const;
  // Errors: invalid (a weight or the count is out of bounds).
  Status check() const;

 private:
  int bucket_of(double value) const;
  double to_latest() const;  // from stored weights to those at the latest add
  void scale(double factor);
  void put(int bucket, double weight);

  Shape shape_;
  // In units of the weight at reference_, from bucket lowest_ to the highest used one.
  std::vector<double> weights_;
  std::size_t lowest_ = 0;
  double total_ = 0;
  double count_ = 0;
  std::optional<double> reference_, latest_;  // seconds; absent before the first add
};

}  // namespace cgphase
