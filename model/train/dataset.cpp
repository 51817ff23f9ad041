#include "model/train/dataset.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "model/feature_schema.h"
#include "model/scaler.h"

namespace cgphase {
namespace {

void scale(Dataset& data, Scaler scaler) {
  data.scaler = std::move(scaler);
  const auto features = static_cast<std::size_t>(data.features);
  data.standardised.resize(data.steps.size() * features);
  for (std::size_t i = 0; i < data.steps.size(); ++i)
    standardise(data.scaler, data.steps[i], std::span(&data.standardised[i * features], features));
}

}  // namespace

DatasetMaker::DatasetMaker(const FeatureSchema& schema, double step_seconds, int history)
    : schema_(schema), step_seconds_(step_seconds) {
  data_.features = static_cast<int>(schema.entries.size());
  data_.history = history;
  for (const FeatureSchema::Entry& entry : schema.entries)
    if (is_optional(entry.feature))
      data_.optional += (data_.optional.empty() ? "" : ", ") + entry.name;
}

void DatasetMaker::add(std::size_t index, const ExecutionHeader& execution, const TraceRow& row) {
  while (pieces_.size() <= index)
    pieces_.push_back({.features = {schema_, step_seconds_}, .steps = {}, .last_step = {},
                       .row = {}, .follows = {}});
  Piece& piece = pieces_[index];
  const std::size_t this_row = piece.rows++;
  FeatureExtractor::Step step = piece.features.add(execution, row);
  if (step.gap) piece.in_history = 0;
  if (!step.vector) return;
  if (lacks_input(schema_, *step.vector)) {
    piece.in_history = 0;
    return;
  }
  piece.steps.push_back(std::move(*step.vector));
  if (++piece.in_history <= data_.history) return;
  piece.last_step.push_back(piece.steps.size() - 1);
  piece.follows.push_back(piece.in_history > data_.history + 1);
  piece.row.push_back(this_row);
}

void DatasetMaker::end_trace() {
  for (Piece& piece : pieces_) {
    const std::size_t before = data_.steps.size();
    std::ranges::move(piece.steps, std::back_inserter(data_.steps));
    for (const std::size_t step : piece.last_step) data_.last_step.push_back(before + step);
    data_.follows.insert(data_.follows.end(), piece.follows.begin(), piece.follows.end());
    data_.row.insert(data_.row.end(), piece.row.begin(), piece.row.end());
    data_.execution.resize(data_.last_step.size(), executions_++);
    piece = {.features = {schema_, step_seconds_}, .steps = {}, .last_step = {}, .row = {},
             .follows = {}};
  }
  pieces_.clear();
}

Dataset DatasetMaker::finish() {
  end_trace();
  Scaler scaler = fit_scaler(data_.steps, data_.features);
  return finish(std::move(scaler));
}

Dataset DatasetMaker::finish(Scaler scaler) {
  end_trace();
  scale(data_, std::move(scaler));
  return std::move(data_);
}

namespace {

DatasetMaker cut_windows(std::span<const Trace> traces, const FeatureSchema& schema,
                         double step_seconds, int history) {
  DatasetMaker maker(schema, step_seconds, history);
  for (const Trace& trace : traces) {
    for (std::size_t i = 0; i < trace.executions.size(); ++i)
      for (const TraceRow& row : trace.executions[i].rows) maker.add(i, trace.executions[i], row);
    maker.end_trace();
  }
  return maker;
}

}  // namespace

Dataset make_dataset(std::span<const Trace> traces, const FeatureSchema& schema,
                     double step_seconds, int history) {
  return cut_windows(traces, schema, step_seconds, history).finish();
}

Dataset make_dataset(std::span<const Trace> traces, const Model& model) {
  return cut_windows(traces, model.schema, model.step_seconds, model.crbm.n_his)
      .finish(model.scaler);
}

}  // namespace cgphase
