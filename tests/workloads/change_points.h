// Finds where a sequence changes its mean: binary segmentation (Scott and Knott, Biometrics 30,
// 1974). It is one of the ways of finding phases that ours is compared with. It sees the whole
// execution.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace cgphase::workloads {

// The first point of each segment, ascending; the first is 0. `points` is row-major [n *
// dimension], n >= 1. A segment is cut where the cut lowers the sum of squared distances to the
// segments' means most, as long as that is more than `penalty`. Of equal cuts the first wins.
std::vector<std::size_t> segments(std::span<const double> points, std::size_t dimension,
                                  double penalty);

// The gain of a new segment by chance (Schwarz's criterion, Yao, Statistics & Probability Letters
// 6, 1988): for its mean and its place, log(n) each times the variance of the noise. The variance
// is estimated from the median squared difference of neighbours, which steps do not affect, as the
// mean over the dimensions. It is at least 1 % of the unit variance of the standardised points.
double segment_penalty(std::span<const double> points, std::size_t dimension);

}  // namespace cgphase::workloads
