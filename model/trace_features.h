// Feature vectors of a recorded execution, from the same extractor that the daemon uses.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "model/feature_extractor.h"
#include "traces/trace.h"

namespace cgphase {

// The columns that a schema needs, in the order of its column entries: TraceOptions::columns.
std::vector<std::string> schema_columns(const FeatureSchema& schema);

// The features of one execution, row by row. A schema with columns takes each row as one model step
// and needs a trace read with schema_columns(). Gaps of the trace still count. Owned and used by
// one thread.
class TraceFeatures {
 public:
  TraceFeatures(const FeatureSchema& schema, double step_seconds);
  FeatureExtractor::Step add(const ExecutionHeader& execution, const TraceRow& row);

 private:
  // Per schema entry: its index in TraceRow::columns.
  std::vector<std::optional<std::size_t>> columns_;
  bool has_columns_;
  FeatureExtractor extractor_;
};

// One Step per row.
std::vector<FeatureExtractor::Step> extract_features(const Execution& execution,
                                                     const FeatureSchema& schema,
                                                     double step_seconds);

}  // namespace cgphase
