// Cost of an epoch of training, in AI4DL's Python and in ours, and the error that it reaches.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "bench/numpy_process.h"
#include "model/train/dataset.h"

namespace cgphase {

// The task of all trainers: the same standardised rows, the same first weights (float32, as in the
// release), windows in file order, AI4DL's published settings.
struct TrainingTask {
  std::vector<Trace> traces;  // with the release's eight columns
  Dataset data;
  CrbmParameters initial;
};
TrainingTask training_task(std::vector<Trace> traces);

// One long execution like the public ones: eight columns that follow two hidden quantities, CPU and
// memory, through phases of some minutes.
Trace made_up_trace(int rows);

// Input of bench/ai4dl_numpy.py for "train".
nlohmann::json as_json(const TrainingTask& task);
nlohmann::json as_json(const CrbmParameters& crbm);

// Prints one line of JSON per trainer. `numpy` may be null.
void bench_training(const TrainingTask& task, int epochs, NumpyProcess* numpy);

}  // namespace cgphase
