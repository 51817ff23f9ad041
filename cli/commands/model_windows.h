// Turns traces into windows of a model's features.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "model/train/dataset.h"
#include "traces/trace.h"

namespace cgphase {

// Returns the windows of all traces, made with the model's schema, step, history and scaler.
// `paths` is not empty. Errors: those of TraceReader; invalid, if there is no window.
struct ModelWindows {
  Dataset data;
  std::vector<TraceSource> sources;
};
Result<ModelWindows> model_windows(const Model& model, const std::vector<std::string>& paths);

// Adds the windows of one trace, read with these columns. Returns the source of the trace. Errors:
// those of TraceReader.
Result<TraceSource> add_trace(DatasetMaker& maker, const std::string& path,
                              const std::vector<std::string>& columns);

}  // namespace cgphase
