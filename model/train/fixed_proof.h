// Compares the fixed-point engine with the double engine for one model: its error bounds, and its
// agreement on data.
#pragma once

#include <cstddef>

#include "model/model.h"
#include "model/train/dataset.h"

namespace cgphase {

struct FixedProof {
  std::size_t windows = 0;
  std::size_t certified = 0;   // the margin exceeds the error bound
  std::size_t agreeing = 0;    // same phase as the double engine
  std::size_t violations = 0;  // certified, but another phase: must be 0
  double largest_activation_error = 0;  // largest observed, of any unit in any window
};

// Runs both engines over all windows of `data`, which was made with the model's schema, step and
// history. Values are clamped as in the daemon.
FixedProof prove_fixed(const Model& model, const Dataset& data);

}  // namespace cgphase
