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
  // One sentence for each installed one that cannot be used; what stands in is `path`.
  std::vector<std::string> passed_over;
};

// Errors: those of load_model(), of the one that the configuration names or of the package's; an
// installed one is passed over instead.
Result<ChosenModel> choose_model(const Config& config);

// What was learned of phases is kept under the key of the model that they are of.
std::string model_key(const PhaseEngine* engine);

// How old memory.stat of a container may be that is only observed (NodeSampler): half a step of the
// model, which looks at memory once a step, and never so old that people wonder.
std::chrono::nanoseconds observed_memory_age(const PhaseEngine* engine);

}  // namespace cgphase
