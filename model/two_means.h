// Cuts a series in two at a level: one-dimensional two-means, online. Pure: no clock, no I/O.
//
// The values so far are kept as at most kTwoMeansBins bins (weight, mean, sum of squared
// deviations), sorted by mean. This is a streaming histogram (Ben-Haim and Tom-Tov, JMLR 11, 2010).
// Its merges follow Ward's criterion: the sum of squares, which two-means minimises.
// Update: each value first multiplies all weights by 1 - 1/kTwoMeansMemory. Then it becomes a bin
// of weight 1, or joins the bin of the same value. If there are too many bins, the two neighbours
// whose merge adds the least sum of squares become one. Bins of less weight than kTwoMeansForgotten
// are dropped.
// Cut: of all places between two bins, the one with the least sum of squares within both sides. In
// one dimension that is the optimum of two-means, so initial means and order of the values do not
// matter, unlike in MacQueen's rule. It is exact while there are at most as many different values
// as bins.
// There is no cut, and so no burst, in three cases. There are fewer than kTwoMeansLeast values. Or
// the means are less than kTwoMeansApart (1 + kTwoMeansLeast / weight of all values) pooled
// standard deviations apart. Or the lower mean is more than kTwoMeansIdle of the higher. Noise of
// one level, cut in two, is 2.65 apart if it is normal, 3.46 if it is uniform and 3.37 if it is
// exponential. With few values it is further apart.
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

  // `memory` is a number of values, after which a value has the weight 1/e.
  explicit TwoMeans(double memory = kTwoMeansMemory) : keep_(1 - 1 / memory) {}

  // Adds a finite value.
  void add(double value);
  // The cut of all values so far; absent if there is none.
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
