#include "model/trace_features.h"

#include "base/check.h"

namespace cgphase {
std::vector<std::string> schema_columns(const FeatureSchema& schema) {
  std::vector<std::string> columns;
  for (const FeatureSchema::Entry& entry : schema.entries)
    if (entry.feature == Feature::column) columns.push_back(entry.name);
  return columns;
}

TraceFeatures::TraceFeatures(const FeatureSchema& schema, double step_seconds)
    : has_columns_(!schema_columns(schema).empty()), extractor_(schema, step_seconds) {
  std::size_t column = 0;
  for (const FeatureSchema::Entry& entry : schema.entries) {
    columns_.emplace_back();
    if (entry.feature == Feature::column) columns_.back() = column++;
  }
}

FeatureExtractor::Step TraceFeatures::add(const ExecutionHeader& execution, const TraceRow& row) {
  FeatureExtractor::Step step =
      extractor_.add(row.sample, row.time, execution.original, execution.host);
  if (!has_columns_) return step;
  // Column entries are filled from the trace, because samples have no columns.
  if (!step.vector) step.vector.emplace();
  step.vector->values.resize(columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!columns_[i]) continue;
    CHECK_INVARIANT(*columns_[i] < row.columns.size());
    step.vector->values[i] = row.columns[*columns_[i]];
  }
  return step;
}

std::vector<FeatureExtractor::Step> extract_features(const Execution& execution,
                                                     const FeatureSchema& schema,
                                                     double step_seconds) {
  TraceFeatures features(schema, step_seconds);
  std::vector<FeatureExtractor::Step> steps;
  for (const TraceRow& row : execution.rows) steps.push_back(features.add(execution, row));
  return steps;
}

}  // namespace cgphase
