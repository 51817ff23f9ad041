// Models of the released AI4DL, and the way its `Predict` computes phases
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

// A Model from AI4DL's parameters as JSON: "features", "scaler" {mean, scale}, "crbm" {n_vis,
// n_hid, n_his, W, A, B, v_bias, h_bias} and "kmeans" {centroids}; other keys are ignored. Its
// features are trace columns, its step is AI4DL's 15 s, novelty distances are unknown. With
// `expanded` also "kmeans_sub" {parent_phase, first_id, centroids}, its second notebook's parts of
// one phase. Errors: invalid, naming `name` and key.
Result<Model> import_ai4dl(const std::string& json_text, const std::string& name,
                           bool expanded = false);

// The weights alone: "W", "A", "B", "v_bias" and "h_bias" of the document, or of its "crbm" or
// "init". Sizes are not looked at. Errors: invalid, naming `name`.
Result<CrbmParameters> parse_ai4dl_weights(const std::string& json_text, const std::string& name);

// Whether a model looks at columns of a trace alone, as those imported do.
bool has_only_columns(const FeatureSchema& schema);

// Phases of one execution as the release computes them, row by row: the phase of row k is that of
// rows k-n_his-1 .. k-1, history is flattened feature-major although it was trained time-major, the
// first n_his+1 rows are the phase of a vector of zeros, timestamps and gaps are ignored, and a
// missing value counts as the training mean. All are `known`. The model must have only columns,
// read with schema_columns(), and must outlive this.
class Ai4dlPredictor {
 public:
  explicit Ai4dlPredictor(const Model& model);

  Phase add(const TraceRow& row);
  // The activation behind that phase, [n_hid], in place of add(): for models without centroids.
  std::span<const double> activation(const TraceRow& row);

 private:
  void push(const TraceRow& row);

  const Model& model_;
  std::vector<double> window_;  // the n_his+1 rows before this one, oldest first, scaled
  std::size_t rows_ = 0;        // in it
  std::vector<double> activation_;
};

// Phases of all rows, one each.
std::vector<Phase> ai4dl_phases(const Model& model, const Execution& execution);

// The activations behind them, row-major [rows * n_hid].
std::vector<double> ai4dl_activations(const Model& model, const Execution& execution);

}  // namespace cgphase
