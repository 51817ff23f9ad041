// What an epoch of training costs, in AI4DL's Python and in ours, and the error that it reaches.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "bench/numpy_process.h"
#include "model/train/dataset.h"

namespace cgphase {

// The task that all trainers get: the same standardised rows, the same first weights (float32, as
// the release holds them), windows in file order, AI4DL's published settings.
struct TrainingTask {
  std::vector<Trace> traces;  // with the release's eight columns
  Dataset data;
  CrbmParameters initial;
};
TrainingTask training_task(std::vector<Trace> traces);

// One long execution like the public ones: eight columns that follow two hidden quantities, CPU and
// memory, through phases of some minutes.
Trace made_up_trace(int rows);

// For bench/ai4dl_numpy.py: "train".
nlohmann::json as_json(const TrainingTask& task);
nlohmann::json as_json(const CrbmParameters& crbm);

// Prints a line of JSON per trainer. `numpy` may be null.
void bench_training(const TrainingTask& task, int epochs, NumpyProcess* numpy);

}  // namespace cgphase
