// Training as the released AI4DL does it (its `TrainModel`; github HiEST/AI4DL), to compare with
// its published models. A model for use is made with `train` of model/train/train.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "model/model.h"
#include "model/train/epoch_report.h"
#include "traces/trace.h"

namespace cgphase {

struct Ai4dlTraining {
  int history = 3, hidden = 10, clusters = 5, epochs = 100;
  double learning_rate = 0.001;
  std::uint64_t seed = 1;
  // Else N(0, 1) * 0.2 / (n_vis * n_his) from the seed. History time-major, as in CrbmParameters.
  std::optional<CrbmParameters> initial;
  // The release shuffles the windows anew for each epoch, without a seed; ours has one.
  bool shuffle = true;
};

// The eight columns that the release is trained on, in its order.
std::vector<std::string> ai4dl_columns();

// One window after the other, CD-1 on means, no momentum, no early stopping. Weights are float32
// between steps and gradients double, one scaler over all rows, windows of history + 1 rows
// whatever their times, a missing value counts as the mean. Phases are k-means of the activations
// that `predict --compat` computes, the zero vectors of the first rows among them. `traces` were
// read with ai4dl_columns(). Reports the mean error of each epoch. Errors: invalid (sizes do not
// fit, no window at all, weights that are not finite).
Result<Model> train_ai4dl(const Ai4dlTraining& options, std::span<const Trace> traces,
                          const std::function<void(const EpochReport&)>& progress = {});

}  // namespace cgphase
