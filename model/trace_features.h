// Feature vectors of a recorded execution, by the same extractor that the daemon uses.
#pragma once

#include <vector>

#include "model/feature_extractor.h"
#include "model/trace.h"

namespace cgphase {

// The columns that a schema asks for, in the order of its column entries: TraceOptions::columns.
std::vector<std::string> schema_columns(const FeatureSchema& schema);

// One Step per row. A schema with columns takes each row as one model step and reads the trace
// with schema_columns(); the trace's own gaps still count.
std::vector<FeatureExtractor::Step> extract_features(const Execution& execution,
                                                     const FeatureSchema& schema,
                                                     double step_seconds);

}  // namespace cgphase
