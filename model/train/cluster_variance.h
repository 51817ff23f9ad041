// How well a trace forms clusters, by their number. This analysis guides the number of phases of a
// model.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "model/train/dataset.h"

namespace cgphase {

inline constexpr int kMostClusters = 12;
// k-means of more points gives the same result and takes minutes.
inline constexpr std::size_t kMostClusteredPoints = 5000;

struct ClusterVariance {
  std::vector<double> within;  // SSW, the cohesion, of k = 1..kMostClusters
  int elbow = 1;               // the choice of `train` with kAutomaticClusters
  std::size_t windows = 0;     // windows in the traces
  std::size_t stride = 1;      // every stride-th window was clustered
};

// Clusters the hidden activations of all windows under `model`, by k-means. The windows were cut as
// the model sees them. Errors: invalid (fewer than kFewestWindows).
Result<ClusterVariance> cluster_variance(const Model& model, const Dataset& data);

}  // namespace cgphase
