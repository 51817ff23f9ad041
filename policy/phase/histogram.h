// A histogram whose old samples count ever less: the memory of every statistic of a container.
//
// The edges of buckets grow by 5 %: bucket 0 holds [0, first),
// bucket i holds [first * 1.05^(i-1), first * 1.05^i), the last all above. A sample's weight halves
// with every half-life that passes (Autopilot, EuroSys'20, section 3.2). A value type; one thread.
// The same samples give the same bits on every machine.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "base/result.h"

namespace cgphase {

class DecayingHistogram {
 public:
  static constexpr int kMaxBuckets = 400;
  static constexpr double kGrowth = 1.05;

  // `first` is the upper edge of the lowest bucket, in the unit of the values. Both above zero.
  struct Shape {
    double first = 0;
    double half_life_seconds = 0;
    friend bool operator==(const Shape&, const Shape&) = default;
  };
  explicit DecayingHistogram(const Shape& shape);
  const Shape& shape() const { return shape_; }

  // A value that is negative or not finite is ignored, as is a weight not above zero. `time` in
  // seconds of any clock; one that goes backwards counts as the latest seen.
  void add(double value, double weight, double time_seconds);

  // Upper edge of the bucket in which `share` (0..1) of the weight is reached, so at most 5 % above
  // the true quantile and never below it. Absent when empty.
  std::optional<double> quantile(double share) const;
  // Upper edge of the highest bucket that still weighs `least_weight` as of the latest add; absent
  // when none does.
  std::optional<double> peak(double least_weight) const;
  // Weight in the buckets of `from` up to and including that of `to`.
  double weight_between(double from, double to) const;
  double total_weight() const;  // as of the latest add
  double count() const { return count_; }  // samples added, undecayed

  // Adds the weights of another of the same shape, as if both ended now, scaled by `factor`.
  void merge(const DecayingHistogram& other, double factor);

  // Times are left out: what is read back ends at the moment of the next add.
  nlohmann::json to_json() const;
  // Errors: invalid (another shape, not finite, out of bounds, not ascending).
  static Result<DecayingHistogram> from_json(const nlohmann::json& json, const Shape& shape);

 private:
  int bucket_of(double value) const;
  double to_latest() const;  // factor from stored weights to those as of the latest add
  void scale(double factor);
  void put(int bucket, double weight);

  Shape shape_;
  // In units of the weight at reference_; from bucket lowest_ to the highest that was hit.
  std::vector<double> weights_;
  std::size_t lowest_ = 0;
  double total_ = 0;
  double count_ = 0;
  std::optional<double> reference_, latest_;  // seconds; absent before the first add
};

}  // namespace cgphase
