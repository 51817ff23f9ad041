// A series cut in two at a level: one-dimensional two-means, online. Pure: no clock, no I/O.
//
// The values so far are kept as at most kTwoMeansBins bins (weight, mean, sum of squares about it),
// sorted by their means: a streaming histogram (Ben-Haim and Tom-Tov, JMLR 11, 2010) whose merges
// follow Ward's criterion, the sum of squares that two-means makes small.
// Update: each value first makes all weights smaller by 1 - 1/kTwoMeansMemory, then becomes a bin
// of weight 1 (or joins the bin of the same value); while there are too many bins, the two
// neighbours whose merging adds the least sum of squares become one. Bins that weigh less than
// kTwoMeansForgotten are dropped.
// Cut: of all places between two bins the one with the least sum of squares within the two sides.
// In one dimension that is the optimum of two-means, so neither the initial means nor the order of
// the values matter as they do to MacQueen's rule; it is exact while there are no more different
// values than bins.
// No cut, and so no burst, is claimed before kTwoMeansLeast values, nor while both means coincide
// for all that can be told: while they lie less than kTwoMeansApart (1 + kTwoMeansLeast / weight of
// all values) pooled standard deviations apart, or the lower is more than kTwoMeansIdle of the
// higher. Much noise of one level, cut in two, lies 2.65 apart if it is normal, 3.46 if it is
// uniform, 3.37 if it is exponential, and a few values of it further.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace cgphase {

inline constexpr std::size_t kTwoMeansBins = 32;
inline constexpr double kTwoMeansMemory = 1024;  // values
inline constexpr double kTwoMeansForgotten = 1.0 / 64;
inline constexpr double kTwoMeansLeast = 16;  // values
inline constexpr double kTwoMeansApart = 4;
inline constexpr double kTwoMeansIdle = 0.75;

class TwoMeans {
 public:
  struct Cut {
    double low = 0, high = 0;  // the two means
    bool is_high(double value) const { return value > (low + high) / 2; }
  };

  // `memory` in values: after so many a value weighs 1/e.
  explicit TwoMeans(double memory = kTwoMeansMemory) : keep_(1 - 1 / memory) {}

  // A finite value.
  void add(double value);
  // Of all values so far; absent while none is claimed.
  std::optional<Cut> cut() const;

 private:
  struct Bin {
    double weight = 0, mean = 0, squares = 0;
    void merge(const Bin& other);
  };
  void forget();
  void merge_closest();

  double keep_;
  double added_ = 0;
  std::vector<Bin> bins_;  // ascending means
};

}  // namespace cgphase
