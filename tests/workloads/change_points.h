// Where a sequence changes its mean: binary segmentation (Scott and Knott, Biometrics 30, 1974),
// one of the ways of finding phases that ours is compared with. It sees the whole execution.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace cgphase::workloads {

// The first point of each segment, ascending, the first 0. `points` is row-major [n * dimension],
// n >= 1. A segment is cut where that lowers the sum of squared distances to the segments' means
// most, as long as it does so by more than `penalty`; of equal cuts the first wins.
std::vector<std::size_t> segments(std::span<const double> points, std::size_t dimension,
                                  double penalty);

// What a new segment gains by chance (Schwarz's criterion, Yao, Statistics & Probability Letters 6,
// 1988): for its mean and its place log(n) each times the variance of the noise. That is taken from
// the median squared difference of neighbours, which steps do not move, in the mean over the
// dimensions; at least 1 % of the unit variance that the points are standardised to.
double segment_penalty(std::span<const double> points, std::size_t dimension);

}  // namespace cgphase::workloads
