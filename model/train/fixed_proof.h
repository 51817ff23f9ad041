// How far the fixed-point engine can be trusted with a model: bounds that hold for every input, and
// what they come to on data.
#pragma once

#include <cstddef>

#include "model/model.h"
#include "model/train/dataset.h"

namespace cgphase {

struct FixedProof {
  std::size_t windows = 0;
  std::size_t certified = 0;   // the margin exceeds the error bound
  std::size_t agreeing = 0;    // same phase as the double engine
  std::size_t violations = 0;  // certified, and another phase: must be 0
  double largest_activation_error = 0;  // seen, of any unit in any window
};

// Runs both engines over all windows of `data`, which was made with the model's schema, step and
// history; its values are clamped as the daemon does.
FixedProof prove_fixed(const Model& model, const Dataset& data);

}  // namespace cgphase
