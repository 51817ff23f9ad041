// Traces as a model sees them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "model/train/dataset.h"
#include "traces/trace.h"

namespace cgphase {

// The windows of all traces, by the model's schema, step, history and its own scaler. Errors are
// those of TraceReader, and invalid where there is no window at all. `paths` is not empty.
struct ModelWindows {
  Dataset data;
  std::vector<TraceSource> sources;
};
Result<ModelWindows> model_windows(const Model& model, const std::vector<std::string>& paths);

// Adds the windows of one trace that is read with these columns, and tells what was read. Errors
// are those of TraceReader.
Result<TraceSource> add_trace(DatasetMaker& maker, const std::string& path,
                              const std::vector<std::string>& columns);

}  // namespace cgphase
