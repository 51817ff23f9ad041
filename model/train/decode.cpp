#include "model/train/decode.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "model/crbm_fixed.h"
#include "model/phase_path.h"

namespace cgphase {
namespace {

std::vector<NearestCentroid> nearest_phases(const Centroids& centroids,
                                            std::span<const double> points, std::size_t count) {
  const auto dimension = static_cast<std::size_t>(centroids.dimension);
  std::vector<NearestCentroid> phases;
  phases.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    phases.push_back(nearest_centroid(centroids, points.subspan(i * dimension, dimension)));
  return phases;
}

}  // namespace

std::vector<NearestCentroid> decode_phases(const Model& model, const Dataset& data,
                                           std::span<const double> points) {
  PhasePath path(model.centroids, model.switch_cost);
  if (!path.sticky()) return nearest_phases(model.centroids, points, data.size());
  const CrbmFixed fixed(model.crbm, model.centroids);
  const auto dimension = static_cast<std::size_t>(model.centroids.dimension);
  std::vector<std::int16_t> window(static_cast<std::size_t>(fixed.window_size()));
  std::vector<std::int64_t> distances(static_cast<std::size_t>(model.centroids.count));
  std::vector<NearestCentroid> phases;
  phases.reserve(data.size());
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (!data.follows[i]) path.reset();
    const double* values = data.window(i);
    std::transform(values, values + window.size(), window.begin(), quantize_input);
    fixed.distances(window, distances.data());
    const PhasePath::Step step = path.step(distances, fixed.error_bound(window));
    const auto centroid = static_cast<std::size_t>(step.index) * dimension;
    phases.push_back(
        {step.index,
         squared_distance(points.subspan(i * dimension, dimension),
                          std::span(&model.centroids.values[centroid], dimension)),
         std::ldexp(static_cast<double>(step.margin), -2 * kActivationShift)});
  }
  return phases;
}

}  // namespace cgphase
