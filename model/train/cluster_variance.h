// How well a trace forms clusters, by their number. This analysis guides the number of phases of a
// model.
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
// k-means of more points gives the same result and takes minutes.
inline constexpr std::size_t kMostClusteredPoints = 5000;

struct ClusterVariance {
  std::vector<double> within;  // SSW, the cohesion, of k = 1..kMostClusters
  int elbow = 1;               // the choice of `train` with kAutomaticClusters
  std::size_t windows = 0;     // windows in the traces
  std::size_t stride = 1;      // every stride-th window was clustered
};

// Clusters the hidden activations of all windows of the traces under `model`, by k-means. The
// traces must be read with schema_columns() of its schema. Errors: invalid (fewer than
// kFewestWindows).
Result<ClusterVariance> cluster_variance(const Model& model, std::span<const Trace> traces);
// The same for windows that were already cut as the model sees them.
Result<ClusterVariance> cluster_variance(const Model& model, const Dataset& data);

}  // namespace cgphase
