#include "model/trace_features.h"

#include "base/check.h"
#include "model/feature_schema.h"

namespace cgphase {
namespace {

// The column entries take the place of what no sample tells.
void fill_columns(const FeatureSchema& schema, const TraceRow& row, FeatureVector& vector) {
  vector.values.resize(schema.entries.size());
  std::size_t column = 0;
  for (std::size_t i = 0; i < schema.entries.size(); ++i) {
    if (schema.entries[i].feature != Feature::column) continue;
    CHECK_INVARIANT(column < row.columns.size());
    vector.values[i] = row.columns[column++];
  }
}

}  // namespace

std::vector<std::string> schema_columns(const FeatureSchema& schema) {
  std::vector<std::string> columns;
  for (const FeatureSchema::Entry& entry : schema.entries)
    if (entry.feature == Feature::column) columns.push_back(entry.name);
  return columns;
}

std::vector<FeatureExtractor::Step> extract_features(const Execution& execution,
                                                     const FeatureSchema& schema,
                                                     double step_seconds) {
  const bool columns = has_columns(schema);
  FeatureExtractor extractor(schema, step_seconds);
  std::vector<FeatureExtractor::Step> steps;
  for (const TraceRow& row : execution.rows) {
    steps.push_back(extractor.add(row.sample, row.time, execution.original, execution.host));
    if (!columns) continue;
    if (!steps.back().vector) steps.back().vector.emplace();
    fill_columns(schema, row, *steps.back().vector);
  }
  return steps;
}

}  // namespace cgphase
