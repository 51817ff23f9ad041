// How well a trace falls into clusters, by their number: the analysis behind the choice of how many
// phases a model has.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "model/train/dataset.h"
#include "traces/trace.h"

namespace cgphase {

inline constexpr int kMostClusters = 12;
// k-means of more points tells no more and takes minutes.
inline constexpr std::size_t kMostClusteredPoints = 5000;

struct ClusterVariance {
  std::vector<double> within;  // SSW, the cohesion, of k = 1..kMostClusters
  int elbow = 1;               // as `train` with kAutomaticClusters would choose
  std::size_t windows = 0;     // that the traces give
  std::size_t stride = 1;      // one window in so many was clustered
};

// Clusters the hidden activations that the windows of the traces have in `model`, by k-means. The
// traces were read with schema_columns() of it. Errors: invalid (fewer than kFewestWindows).
Result<ClusterVariance> cluster_variance(const Model& model, std::span<const Trace> traces);
// The same of windows that were cut already, as the model sees them.
Result<ClusterVariance> cluster_variance(const Model& model, const Dataset& data);

}  // namespace cgphase
