// Nearest centroid in hidden-activation space, in double; the fixed-point twin is in crbm_fixed.h.
#pragma once

#include <span>

#include "model/model.h"

namespace cgphase {

struct NearestCentroid {
  int index = 0;
  double distance = 0;  // squared Euclidean
  double margin = 0;    // squared distance to the second centroid minus `distance`; 0 if only one
};

// Sums run over the dimensions in ascending order; of equally near centroids the first wins.
// `point` has centroids.dimension values, and there is at least one centroid.
NearestCentroid nearest_centroid(const Centroids& centroids, std::span<const double> point);

double squared_distance(std::span<const double> a, std::span<const double> b);

}  // namespace cgphase
