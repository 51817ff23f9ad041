// The windows on which a model is trained.
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

// The steps of all executions, one after the other. A window is n_his + 1 consecutive steps without
// a gap, so that it is a contiguous part of `standardised`.
struct Dataset {
  int features = 0, history = 0;
  std::string optional;  // names of the optional features; a step without them is excluded
  Scaler scaler;
  std::vector<FeatureVector> steps;
  std::vector<double> standardised;      // [steps * features], row-major
  std::vector<std::size_t> last_step;    // per window, ascending
  std::vector<std::size_t> execution;    // per window: index over all executions, in order
  std::vector<std::uint8_t> follows;     // per window: 1 if it directly follows the window before
  std::vector<std::size_t> row;          // per window: the row of its execution where it ends

  std::size_t size() const { return last_step.size(); }
  const double* window(std::size_t index) const {
    const std::size_t first = last_step[index] - static_cast<std::size_t>(history);
    return &standardised[first * static_cast<std::size_t>(features)];
  }
};

// Cuts windows from rows as they arrive. It keeps their feature vectors, not their samples. It runs
// the extractor of the daemon over each execution. A step that measured nothing, or lacks an
// optional feature, ends a history, as in the tracker.
class DatasetMaker {
 public:
  DatasetMaker(const FeatureSchema& schema, double step_seconds, int history);

  // Adds a row of execution `index` of its trace, counted from 0 by first appearance.
  void add(std::size_t index, const ExecutionHeader& execution, const TraceRow& row);
  void end_trace();  // later rows belong to other executions

  // Returns all windows, with a scaler that is fitted to them, or with the given one.
  Dataset finish();
  Dataset finish(Scaler scaler);

 private:
  // The steps of one execution. Windows are as in Dataset, with steps counted from its first.
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
  std::size_t executions_ = 0;  // executions in data_
  std::vector<Piece> pieces_;   // one per execution of the current trace
};

// Runs the extractor of the daemon over all executions, fits the scaler and cuts windows. A step
// that lacks_input() ends a history, as in the tracker.
Dataset make_dataset(std::span<const Trace> traces, const FeatureSchema& schema,
                     double step_seconds, int history);

// The windows as `model` sees them: with its features, step, history and scaler. The traces must be
// read with schema_columns() of its schema.
Dataset make_dataset(std::span<const Trace> traces, const Model& model);

}  // namespace cgphase
