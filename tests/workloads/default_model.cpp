#include "tests/workloads/default_model.h"

#include <algorithm>
#include <filesystem>

#include "model/phase_tracker.h"
#include "model/trace_features.h"

namespace cgphase::workloads {

Result<std::vector<Trace>> read_traces(const std::string& directory, TraceSet set,
                                       const TraceOptions& options) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    const bool held_out = name.find("heldout") != std::string::npos;
    if (name.ends_with(".csv.gz") && held_out == (set == TraceSet::held_out))
      paths.push_back(entry.path());
  }
  if (error) return errno_failure(directory, error.value());
  std::sort(paths.begin(), paths.end());
  std::vector<Trace> traces;
  for (const std::string& path : paths) {
    auto trace = read_trace(path, options);
    if (!trace) return std::unexpected(trace.error());
    traces.push_back(std::move(*trace));
  }
  return traces;
}

Result<Model> train_default_model(const std::string& directory) {
  const auto traces = read_traces(directory, TraceSet::training);
  if (!traces) return std::unexpected(traces.error());
  return train(TrainOptions{}, *traces);
}

namespace {

void score_execution(const Execution& execution, const std::shared_ptr<const PhaseEngine>& engine,
                     ModelScore& score) {
  const Model& model = engine->model();
  PhaseTracker tracker(engine);
  const auto steps = extract_features(execution, model.schema, model.step_seconds);
  for (std::size_t row = 0; row < steps.size(); ++row) {
    if (steps[row].gap) tracker.reset();
    if (!steps[row].vector) continue;
    const Phase phase = tracker.step(*steps[row].vector);
    ++score.steps;
    score.unknown += phase.state == PhaseState::unknown;
    score.without_history += phase.state == PhaseState::not_enough_history;
    if (!phase.known()) continue;
    const std::string truth = execution.service + ":" + execution.rows[row].label;
    score.all.add(phase.index, truth);
    score.by_service[execution.service].add(phase.index, truth);
  }
}

}  // namespace

Result<ModelScore> score_model(const Model& model, std::span<const Trace> traces) {
  const auto engine = PhaseEngine::create(model);
  if (!engine) return std::unexpected(engine.error());
  ModelScore score;
  for (const Trace& trace : traces)
    for (const Execution& execution : trace.executions) score_execution(execution, *engine, score);
  return score;
}

}  // namespace cgphase::workloads
