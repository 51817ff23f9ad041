// Feature vectors of a recorded execution, by the same extractor that the daemon uses.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "model/feature_extractor.h"
#include "traces/trace.h"

namespace cgphase {

// The columns that a schema asks for, in the order of its column entries: TraceOptions::columns.
std::vector<std::string> schema_columns(const FeatureSchema& schema);

// The features of one execution, row by row. A schema with columns takes each row as one model step
// and reads the trace with schema_columns(); the trace's own gaps still count.
class TraceFeatures {
 public:
  TraceFeatures(const FeatureSchema& schema, double step_seconds);
  FeatureExtractor::Step add(const ExecutionHeader& execution, const TraceRow& row);

 private:
  std::vector<std::optional<std::size_t>> columns_;  // of each entry the place in TraceRow::columns
  bool has_columns_;
  FeatureExtractor extractor_;
};

// One Step per row.
std::vector<FeatureExtractor::Step> extract_features(const Execution& execution,
                                                     const FeatureSchema& schema,
                                                     double step_seconds);

}  // namespace cgphase
