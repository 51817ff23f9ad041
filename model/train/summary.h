// The result of k-means in the form of a model: centroids in a fixed order, statistics per phase.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/model.h"
#include "model/train/dataset.h"
#include "model/train/kmeans.h"

namespace cgphase {

// The centroids, renumbered by rising mean of the first feature in the last steps of their windows.
// `windows` has the window in `data` of each point of the fit.
Centroids in_order(const KMeansFit& fit, const Dataset& data,
                   std::span<const std::size_t> windows);

// Statistics of the phases of `data` (decode_phases), one per centroid of the model. `points` are
// the activations of all windows, row-major [data.size() * n_hid].
std::vector<PhaseSummary> summarise(const Model& model, const Dataset& data,
                                    std::span<const double> points);

}  // namespace cgphase
