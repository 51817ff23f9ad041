// Measures how well the phases of a model fit new data, and splits one of them ("expanding phases",
// AI4DL's second notebook). Scaler, CRBM and the other phases do not change.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "model/train/dataset.h"

namespace cgphase {

inline constexpr std::size_t kFewestToSplit = 20;  // fewest samples of a phase to split

// The windows of a dataset as the model sees them.
struct PhaseSamples {
  std::vector<double> activations;  // row-major [windows * n_hid]
  std::vector<int> phases;          // phase of each window (decode_phases)
  std::vector<double> distances;    // squared distance of each window to its phase
};
PhaseSamples assign_phases(const Model& model, const Dataset& data);

struct PhaseFit {
  std::size_t samples = 0;
  std::size_t novel = 0;   // farther away than 99 % of the training samples of the phase
  double inertia = 0;      // sum of squared distances
  double split_gain = 0;   // reduction of the inertia if it became two phases
};

struct NoveltyReport {
  std::size_t samples = 0, novel = 0;
  bool bounds_known = false;     // false if the model has no novelty_distance
  std::vector<PhaseFit> phases;  // one per centroid
  int to_split = -1;  // the phase with the largest split_gain; -1 if none has enough samples
};
// Deterministic for a seed.
NoveltyReport report_novelty(const Model& model, const PhaseSamples& samples, std::uint64_t seed);

struct SplitOptions {
  int phase = 0;
  int clusters = 2;
  std::uint64_t seed = 1;
};
// Returns the model with `phase` split by k-means of its samples (k-means++, 10 restarts). The
// parts are numbered after the last phase, by rising mean of the first feature. Errors: invalid (no
// such phase, already split, too few or too similar samples, too many phases in all).
Result<Model> split_phase(const Model& model, const Dataset& data, const PhaseSamples& samples,
                          const SplitOptions& options);

}  // namespace cgphase
