// The windows that a model is trained on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/feature_vector.h"
#include "model/model.h"
#include "model/trace_features.h"
#include "traces/trace.h"

namespace cgphase {

// Steps of all executions one after the other. A window is n_his + 1 steps that follow each other
// without a gap, so it is a contiguous piece of `standardised`.
struct Dataset {
  int features = 0, history = 0;
  std::string optional;  // names of the optional features, without which a step is not here
  Scaler scaler;
  std::vector<FeatureVector> steps;
  std::vector<double> standardised;      // [steps * features], row-major
  std::vector<std::size_t> last_step;    // of each window, ascending
  std::vector<std::size_t> execution;    // of each window: index over all executions, in order
  std::vector<std::uint8_t> follows;     // of each window: 1 if it is the next after the one before
  std::vector<std::size_t> row;          // of each window: the row of its execution it ends at

  std::size_t size() const { return last_step.size(); }
  const double* window(std::size_t index) const {
    const std::size_t first = last_step[index] - static_cast<std::size_t>(history);
    return &standardised[first * static_cast<std::size_t>(features)];
  }
};

// Cuts windows out of rows as they come: keeps their feature vectors, not their samples. Runs the
// extractor of the daemon over each execution. A step that measured nothing, or lacks an
// optional feature, ends a history, as in the tracker.
class DatasetMaker {
 public:
  DatasetMaker(const FeatureSchema& schema, double step_seconds, int history);

  // A row of the execution `index` of its trace, counted from 0 by first appearance.
  void add(std::size_t index, const ExecutionHeader& execution, const TraceRow& row);
  void end_trace();  // what follows are other executions

  // Everything that was added, with a scaler fit to it, or with this one.
  Dataset finish();
  Dataset finish(Scaler scaler);

 private:
  // The steps of one execution; windows as in Dataset, steps counted from its first.
  struct Piece {
    TraceFeatures features;
    std::size_t rows = 0;
    int in_history = 0;
    std::vector<FeatureVector> steps;
    std::vector<std::size_t> last_step, row;
    std::vector<std::uint8_t> follows;
  };

  FeatureSchema schema_;
  double step_seconds_;
  Dataset data_;
  std::size_t executions_ = 0;  // in data_
  std::vector<Piece> pieces_;   // of the trace that has not ended
};

// Runs the extractor of the daemon over all executions, fits the scaler and cuts windows. A step
// that lacks_input() ends a history, as in the tracker.
Dataset make_dataset(std::span<const Trace> traces, const FeatureSchema& schema,
                     double step_seconds, int history);

// The windows as `model` sees them: its features, step, history and scaler. The traces were read
// with schema_columns() of it.
Dataset make_dataset(std::span<const Trace> traces, const Model& model);

}  // namespace cgphase
