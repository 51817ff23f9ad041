#include "model/centroids.h"

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
  double distances[kMaxPhases];
  const auto count = static_cast<std::size_t>(centroids.count);
  CHECK_INVARIANT(count <= std::size_t{kMaxPhases});
  for (std::size_t i = 0; i < count; ++i)
    distances[i] = squared_distance(point, std::span(&centroids.values[i * dimension], dimension));
  const CentroidChoice<double> choice =
      choose_centroid(std::span<const double>(distances, count), centroids.parents);
  return {choice.index, choice.distance, choice.margin};
}

}  // namespace cgphase
