#include "model/centroids.h"

#include <limits>

#include "base/check.h"

namespace cgphase {

double squared_distance(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

NearestCentroid nearest_centroid(const Centroids& centroids, std::span<const double> point) {
  const auto dimension = static_cast<std::size_t>(centroids.dimension);
  CHECK_INVARIANT(point.size() == dimension && centroids.count > 0);
  constexpr double kFar = std::numeric_limits<double>::infinity();
  NearestCentroid best{-1, kFar, 0};
  double second = kFar;
  for (int index = 0; index < centroids.count; ++index) {
    const std::span row(&centroids.values[static_cast<std::size_t>(index) * dimension], dimension);
    const double distance = squared_distance(point, row);
    if (distance < best.distance || best.index < 0) {
      second = best.distance;
      best = {index, distance, 0};
    } else if (distance < second) {
      second = distance;
    }
  }
  best.margin = centroids.count > 1 ? second - best.distance : 0;
  return best;
}

}  // namespace cgphase
