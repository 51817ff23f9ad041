// The phases of a whole dataset, as the tracker finds them step by step.
#pragma once

#include <span>
#include <vector>

#include "model/centroids.h"
#include "model/model.h"
#include "model/train/dataset.h"

namespace cgphase {

// Per window its phase; `points` are the activations of all windows, row-major [data.size() *
// n_hid]. Without a switch cost the nearest of the double engine. With one it is the tracker's own
// path over the integers' distances, begun anew with each execution and after each gap; the
// distance to the phase so chosen is that of the double engine, the margin the path's.
std::vector<NearestCentroid> decode_phases(const Model& model, const Dataset& data,
                                           std::span<const double> points);

}  // namespace cgphase
