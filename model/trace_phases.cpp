#include "model/trace_phases.h"

#include <utility>

namespace cgphase {

PhaseFollower::PhaseFollower(std::shared_ptr<const PhaseEngine> engine)
    : feature_count_(engine->model().schema.entries.size()),
      features_(engine->model().schema, engine->model().step_seconds),
      tracker_(std::move(engine)) {}

Phase PhaseFollower::add(const ExecutionHeader& execution, const TraceRow& row) {
  const FeatureExtractor::Step step = features_.add(execution, row);
  if (step.gap) {
    tracker_.reset();
    current_ = {};
  }
  stepped_ = step.vector.has_value();
  if (stepped_) {
    ++steps_;
    current_ = tracker_.step(*step.vector);
  }
  return current_;
}

std::vector<Phase> tracked_phases(const std::shared_ptr<const PhaseEngine>& engine,
                                  const Execution& execution) {
  PhaseFollower follower(engine);
  std::vector<Phase> phases;
  for (const TraceRow& row : execution.rows) phases.push_back(follower.add(execution, row));
  return phases;
}

}  // namespace cgphase
