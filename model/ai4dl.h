// Imports models of the released AI4DL and computes phases as its `Predict` does
// (docs/internals/model-file.md).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "model/phase.h"
#include "traces/trace.h"

namespace cgphase {

// Converts AI4DL's parameters in JSON to a Model: "features", "scaler" {mean, scale}, "crbm"
// {n_vis, n_hid, n_his, W, A, B, v_bias, h_bias} and "kmeans" {centroids}. Other keys are ignored.
// The features are trace columns, the step is AI4DL's 15 s, novelty distances are unknown. With
// `expanded` it also reads "kmeans_sub" {parent_phase, first_id, centroids}, the parts of one phase
// from AI4DL's second notebook. Errors: invalid, with `name` and key.
Result<Model> import_ai4dl(const std::string& json_text, const std::string& name,
                           bool expanded = false);

// Reads only the weights: "W", "A", "B", "v_bias" and "h_bias" of the document, or of its "crbm" or
// "init". Sizes are not checked. Errors: invalid, with `name`.
Result<CrbmParameters> parse_ai4dl_weights(const std::string& json_text, const std::string& name);

// True if all features are trace columns, as in imported models.
bool has_only_columns(const FeatureSchema& schema);

// Computes phases of one execution row by row, as the release does. The phase of row k is that of
// rows k-n_his-1 .. k-1. History is flattened feature-major although it was trained time-major. The
// first n_his+1 rows have the phase of a vector of zeros. Timestamps and gaps are ignored, and a
// missing value counts as the training mean. All phases are `known`. The model must have only
// columns, read with schema_columns(), and must outlive this object.
class Ai4dlPredictor {
 public:
  explicit Ai4dlPredictor(const Model& model);

  Phase add(const TraceRow& row);
  // The activation of that phase, [n_hid], for models without centroids. Call it instead of add().
  std::span<const double> activation(const TraceRow& row);

 private:
  void push(const TraceRow& row);

  const Model& model_;
  std::vector<double> window_;  // the n_his+1 previous rows, oldest first, scaled
  std::size_t rows_ = 0;        // rows in the window
  std::vector<double> activation_;
};

// Phases of all rows, one per row.
std::vector<Phase> ai4dl_phases(const Model& model, const Execution& execution);

// The activations of all rows, row-major [rows * n_hid].
std::vector<double> ai4dl_activations(const Model& model, const Execution& execution);

}  // namespace cgphase
