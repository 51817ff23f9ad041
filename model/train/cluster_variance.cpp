#include "model/train/cluster_variance.h"

#include <fmt/format.h>

#include "model/train/crbm_trainer.h"
#include "model/train/kmeans.h"
#include "model/train/train.h"

namespace cgphase {
namespace {

std::vector<double> every(std::size_t stride, const std::vector<double>& points,
                          std::size_t dimension) {
  std::vector<double> kept;
  for (std::size_t i = 0; i < points.size(); i += stride * dimension)
    kept.insert(kept.end(), &points[i], &points[i] + dimension);
  return kept;
}

}  // namespace

Result<ClusterVariance> cluster_variance(const Model& model, const Dataset& data) {
  if (data.size() < kFewestWindows)
    return failure(ErrorKind::invalid,
                   fmt::format("the trace gives {} windows of {} steps of {} s without a gap, at "
                               "least {} are needed: record longer",
                               data.size(), data.history + 1, model.step_seconds, kFewestWindows));
  ClusterVariance variance;
  variance.windows = data.size();
  variance.stride = (data.size() + kMostClusteredPoints - 1) / kMostClusteredPoints;
  const auto points = every(variance.stride, activations(model.crbm, data),
                            static_cast<std::size_t>(model.crbm.n_hid));
  variance.within = cohesion(points, model.crbm.n_hid, kMostClusters, {});
  variance.elbow = elbow(std::span(variance.within).first(kMostAutomaticClusters));
  return variance;
}

}  // namespace cgphase
