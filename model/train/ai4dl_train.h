// Trains as the released AI4DL does (its `TrainModel`; github HiEST/AI4DL), to compare with its
// published models. Use `train` of model/train/train.h to make a model for use.
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
  // If absent, N(0, 1) * 0.2 / (n_vis * n_his) from the seed. History is time-major, as in
  // CrbmParameters.
  std::optional<CrbmParameters> initial;
  // The release shuffles the windows for each epoch without a seed. Here the seed decides.
  bool shuffle = true;
};

// The eight columns that the release is trained on, in its order.
std::vector<std::string> ai4dl_columns();

// Trains one window after the other with CD-1 on means, without momentum and early stopping.
// Weights are float32 between steps, gradients are double. One scaler covers all rows. Windows are
// history + 1 rows, whatever their times. A missing value counts as the mean. Phases are k-means of
// the activations that `predict --compat` computes, including the zero vectors of the first rows.
// `traces` must be read with ai4dl_columns(). Reports the mean error of each epoch. Errors: invalid
// (sizes do not match, no window, weights that are not finite).
Result<Model> train_ai4dl(const Ai4dlTraining& options, std::span<const Trace> traces,
                          const std::function<void(const EpochReport&)>& progress = {});

}  // namespace cgphase
