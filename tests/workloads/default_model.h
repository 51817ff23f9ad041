// Trains model/default_model.json from the traces of tests/data, and scores how well the phases of
// a model agree with the true ones.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "model/train/train.h"
#include "tests/workloads/phase_score.h"
#include "traces/trace.h"

namespace cgphase::workloads {

// All recorded traces of `directory` by name: those that the default model is trained on, or the
// held-out ones ("heldout" in their names).
enum class TraceSet { training, held_out };
Result<std::vector<Trace>> read_traces(const std::string& directory, TraceSet set,
                                       const TraceOptions& options = {});

// Uses the default options. The same traces give the same model, byte for byte.
Result<Model> train_default_model(const std::string& directory);

struct ModelScore {
  PhaseScore all;  // truth: "SERVICE:PHASE"
  std::map<std::string, PhaseScore> by_service;
  std::size_t steps = 0, unknown = 0, without_history = 0;
};
// Uses phases as the daemon would recognise them. Errors: invalid (the model).
Result<ModelScore> score_model(const Model& model, std::span<const Trace> traces);

}  // namespace cgphase::workloads
