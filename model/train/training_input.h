// What traces must give before a model can be trained on them.
#pragma once

#include <string>

#include "base/result.h"
#include "model/train/dataset.h"

namespace cgphase {

// At least `needed` windows, and one feature that is not the same in all steps. `name` (the traces)
// opens the error: invalid, telling how many windows there are, or what was never measured.
Status check_training_input(const Dataset& data, double step_seconds, std::size_t needed,
                            const std::string& name);

}  // namespace cgphase
