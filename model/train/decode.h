// Finds the phases of a whole dataset, as the tracker does step by step.
#pragma once

#include <span>
#include <vector>

#include "model/centroids.h"
#include "model/model.h"
#include "model/train/dataset.h"

namespace cgphase {

// Returns the phase of each window. `points` are the activations of all windows, row-major
// [data.size() * n_hid]. Without a switch cost it is the nearest phase in double. With a switch
// cost it is the tracker's own path over integer distances, restarted with each execution and after
// each gap. Then the distance is computed in double, and the margin is that of the path.
std::vector<NearestCentroid> decode_phases(const Model& model, const Dataset& data,
                                           std::span<const double> points);

}  // namespace cgphase
