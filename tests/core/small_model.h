// A model with predictable phases.
#pragma once

#include <memory>
#include <vector>

#include "model/phase_tracker.h"

namespace cgphase {

// Two features and two phases far apart in hidden space: idle (little CPU) and busy.
inline Model small_model() {
  Model model;
  model.schema.entries = {{Feature::cpu_usage_ratio, "cpu_usage_ratio"},
                          {Feature::memory_need_ratio, "memory_need_ratio"}};
  model.step_seconds = 1;
  model.scaler = {.mean = {0.5, 0.5}, .scale = {0.25, 0.25}};
  model.crbm = {.n_vis = 2, .n_hid = 2, .n_his = 1,
                .w = {2, 0, 0, 0.1}, .a = std::vector<double>(4, 0), .b = std::vector<double>(4, 0),
                .visible_bias = {0, 0}, .hidden_bias = {0, 0}};
  model.centroids = {.count = 2, .dimension = 2, .values = {0.05, 0.5, 0.95, 0.5}};
  model.phases.resize(2);
  for (PhaseSummary& phase : model.phases) phase = {.count = 100, .novelty_distance = 0.2};
  return model;
}

inline std::shared_ptr<const PhaseEngine> small_engine() {
  return PhaseEngine::create(small_model()).value();
}

}  // namespace cgphase
