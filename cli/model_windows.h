// Traces as a model sees them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "model/train/dataset.h"

namespace cgphase {

// The windows of all traces, by the model's schema, step, history and its own scaler. Errors are
// those of read_trace, and invalid where there is no window at all. `paths` is not empty.
Result<Dataset> model_windows(const Model& model, const std::vector<std::string>& paths);

}  // namespace cgphase
