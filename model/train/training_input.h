// Checks that traces have enough data to train a model.
#pragma once

#include <string>

#include "base/result.h"
#include "model/train/dataset.h"

namespace cgphase {

// Requires at least `needed` windows, and one feature that varies. The error starts with `name`
// (the traces). It is invalid and contains the number of windows, or the values that were never
// measured.
Status check_training_input(const Dataset& data, double step_seconds, std::size_t needed,
                            const std::string& name);

}  // namespace cgphase
