// Which model the daemon runs: the one that the configuration names; else the one that was
// installed on this host (model/installed_models.h); else that of the package.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "agent/config/config.h"
#include "base/result.h"
#include "model/phase_tracker.h"

namespace cgphase {

struct ChosenModel {
  std::shared_ptr<const PhaseEngine> engine;  // null: no phases
  std::string path;
  std::string origin;  // "configuration", "installed" or "package"
  // One sentence for each installed model that cannot be used; `path` replaces it.
  std::vector<std::string> passed_over;
};

// Errors: those of load_model() for the model of the configuration or of the package. An installed
// model with an error is passed over.
Result<ChosenModel> choose_model(const Config& config);

// The key of the model. Statistics of its phases are stored under it.
std::string model_key(const PhaseEngine* engine);

// Maximum age of memory.stat of a container in observe mode (NodeSampler): half a step of the
// model, which reads memory once a step. It is capped, so that `list` shows no old values.
std::chrono::nanoseconds observed_memory_age(const PhaseEngine* engine);

}  // namespace cgphase
