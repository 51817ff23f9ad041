// A learned model: all parameters that turn feature vectors into phases. It is a value;
// docs/internals/model-file.md defines its file. It is read-only after loading, so that all
// containers may share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/feature_vector.h"

namespace cgphase {

// Standardisation with the population standard deviation: (x - mean) / scale, per feature.
struct Scaler {
  std::vector<double> mean, scale;
  friend bool operator==(const Scaler&, const Scaler&) = default;
};

// Row-major matrices. W[n_hid * n_vis], A[n_vis * n_vis*n_his], B[n_hid * n_vis*n_his];
// history is time-major, oldest first (docs/internals/model-file.md).
struct CrbmParameters {
  int n_vis = 0, n_hid = 0, n_his = 0;
  std::vector<double> w, a, b, visible_bias, hidden_bias;
  friend bool operator==(const CrbmParameters&, const CrbmParameters&) = default;
};

struct Centroids {
  int count = 0, dimension = 0;
  std::vector<double> values;  // row-major [count * dimension], in hidden-activation space
  // For each centroid the index of the phase that it is a part of, -1 for none. A part has a higher
  // index than its phase. Empty if no phase was split. A split phase is never recognised itself,
  // only its parts.
  std::vector<int> parents;
  friend bool operator==(const Centroids&, const Centroids&) = default;
};

// Mergeable statistics of one phase in the training data, relative to the original limit.
struct PhaseSummary {
  double count = 0;
  double cpu_mean_ratio = 0, cpu_m2 = 0;        // Welford: m2 = sum of squared deviations
  double memory_mean_ratio = 0, memory_m2 = 0;
  // 99 % of the training samples of this phase are nearer (squared distance); 0 = not known.
  double novelty_distance = 0;
};

struct Model {
  FeatureSchema schema;
  double step_seconds = 0;       // one feature vector per step
  Scaler scaler;
  CrbmParameters crbm;
  Centroids centroids;
  // Cost of a change of phase on the path (phase_path.h), a squared distance, rounded to 2^-30.
  // With 0, the phase is the nearest one.
  double switch_cost = 0;
  std::vector<PhaseSummary> phases;                // one per centroid
  std::map<std::string, std::string> provenance;   // free text: program, seed, inputs' CRCs
};

// Limits of a model file. A file above any of them is refused.
inline constexpr int kMaxFeatures = 64;
inline constexpr int kMaxHidden = 256;
inline constexpr int kMaxHistory = 32;
inline constexpr int kMaxPhases = 32;
inline constexpr std::size_t kMaxModelFileBytes = 16U << 20;

inline constexpr int kMaxProvenance = 64;
inline constexpr std::size_t kMaxTextBytes = 4096;  // of a provenance key or text, a column name
inline constexpr double kMaxParameter = 1e6;        // magnitude of a weight or bias
// The largest squared distance between two points of kMaxHidden activations.
inline constexpr double kMaxSwitchCost = kMaxHidden;
inline constexpr double kMaxStepSeconds = 86'400;

// Checks that sizes match, all numbers are finite and within the limits above, and centroids are in
// [0, 1]. The error is invalid, starts with `name` and has the key as in the file.
Status check_model(const Model& model, const std::string& name);

// Errors contain file and key: invalid (malformed, wrong checksum or version, out of bounds, not
// finite), not_found, denied.
Result<Model> load_model(const std::string& path);
Result<Model> parse_model(const std::string& json_text, const std::string& name);
std::string serialize_model(const Model& model);   // the same model gives the same bytes
Status save_model(const Model& model, const std::string& path);

}  // namespace cgphase
