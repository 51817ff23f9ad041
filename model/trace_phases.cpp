#include "model/trace_phases.h"

#include "model/trace_features.h"

namespace cgphase {

std::vector<Phase> tracked_phases(const std::shared_ptr<const PhaseEngine>& engine,
                                  const Execution& execution) {
  const Model& model = engine->model();
  PhaseTracker tracker(engine);
  Phase current;
  std::vector<Phase> phases;
  for (const FeatureExtractor::Step& step :
       extract_features(execution, model.schema, model.step_seconds)) {
    if (step.gap) {
      tracker.reset();
      current = {};
    }
    if (step.vector) current = tracker.step(*step.vector);
    phases.push_back(current);
  }
  return phases;
}

}  // namespace cgphase
