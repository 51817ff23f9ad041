#include "model/train/dataset.h"

#include <algorithm>
#include <cmath>

#include "model/scaler.h"
#include "model/trace_features.h"

namespace cgphase {
namespace {

bool measured(const FeatureVector& vector) {
  return std::ranges::any_of(vector.values, [](const std::optional<double>& value) {
    return value && std::isfinite(*value);
  });
}

// Appends the steps of one execution and the windows that end in them.
void add_execution(Dataset& data, const Execution& execution, std::size_t index,
                   const FeatureSchema& schema, double step_seconds) {
  int in_history = 0;
  std::size_t row = 0;
  for (FeatureExtractor::Step& step : extract_features(execution, schema, step_seconds)) {
    const std::size_t this_row = row++;
    if (step.gap) in_history = 0;
    if (!step.vector) continue;
    if (!measured(*step.vector)) {
      in_history = 0;
      continue;
    }
    data.steps.push_back(std::move(*step.vector));
    if (++in_history <= data.history) continue;
    data.last_step.push_back(data.steps.size() - 1);
    data.execution.push_back(index);
    data.follows.push_back(in_history > data.history + 1);
    data.row.push_back(this_row);
  }
}

Dataset cut_windows(std::span<const Trace> traces, const FeatureSchema& schema, double step_seconds,
                    int history) {
  Dataset data;
  data.features = static_cast<int>(schema.entries.size());
  data.history = history;
  std::size_t index = 0;
  for (const Trace& trace : traces)
    for (const Execution& execution : trace.executions)
      add_execution(data, execution, index++, schema, step_seconds);
  return data;
}

void scale(Dataset& data, Scaler scaler) {
  data.scaler = std::move(scaler);
  const auto features = static_cast<std::size_t>(data.features);
  data.standardised.resize(data.steps.size() * features);
  for (std::size_t i = 0; i < data.steps.size(); ++i)
    standardise(data.scaler, data.steps[i], std::span(&data.standardised[i * features], features));
}

}  // namespace

Dataset make_dataset(std::span<const Trace> traces, const FeatureSchema& schema,
                     double step_seconds, int history) {
  Dataset data = cut_windows(traces, schema, step_seconds, history);
  scale(data, fit_scaler(data.steps, data.features));
  return data;
}

Dataset make_dataset(std::span<const Trace> traces, const Model& model) {
  Dataset data = cut_windows(traces, model.schema, model.step_seconds, model.crbm.n_his);
  scale(data, model.scaler);
  return data;
}

}  // namespace cgphase
