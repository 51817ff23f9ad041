// How well the phases of a model fit new data, and splitting one of them ("expanding phases",
// AI4DL's second notebook). Scaler, CRBM and the other phases stay as they are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "model/train/dataset.h"

namespace cgphase {

inline constexpr std::size_t kFewestToSplit = 20;  // samples of the phase

// The windows of a dataset as the model sees them.
struct PhaseSamples {
  std::vector<double> activations;  // row-major [windows * n_hid]
  std::vector<int> phases;          // of each window (decode_phases)
  std::vector<double> distances;    // squared, to its phase
};
PhaseSamples assign_phases(const Model& model, const Dataset& data);

struct PhaseFit {
  std::size_t samples = 0;
  std::size_t novel = 0;   // farther than 99 % of the training samples of the phase were
  double inertia = 0;      // sum of squared distances
  double split_gain = 0;   // by how much two phases instead of it would lower the inertia
};

struct NoveltyReport {
  std::size_t samples = 0, novel = 0;
  bool bounds_known = false;     // false for models that do not tell novelty_distance
  std::vector<PhaseFit> phases;  // one per centroid
  int to_split = -1;             // the phase with the largest split_gain; -1 where none has enough
};
// Deterministic for a seed.
NoveltyReport report_novelty(const Model& model, const PhaseSamples& samples, std::uint64_t seed);

struct SplitOptions {
  int phase = 0;
  int clusters = 2;
  std::uint64_t seed = 1;
};
// The model with the samples of `phase` parted by k-means (k-means++, 10 restarts): the parts are
// numbered on from the last phase, by rising mean of the first feature. Errors: invalid (no such
// phase, one that was split already, too few or too equal samples, too many phases in all).
Result<Model> split_phase(const Model& model, const Dataset& data, const PhaseSamples& samples,
                          const SplitOptions& options);

}  // namespace cgphase
