#include "agent/chosen_model.h"

#include <algorithm>
#include <utility>

#include "base/crc32.h"
#include "model/installed_models.h"
#include "model/model.h"

namespace cgphase {
namespace {

// 5 s, less what a tick may come early.
constexpr std::chrono::milliseconds kMostMemoryAge{4900};

Status take(const std::string& path, const char* origin, ChosenModel& chosen) {
  Result<Model> model = load_model(path);
  if (!model) return std::unexpected(model.error());
  auto engine = PhaseEngine::create(std::move(*model));
  if (!engine) return std::unexpected(engine.error());
  chosen.engine = *std::move(engine);
  chosen.path = path;
  chosen.origin = origin;
  return {};
}

// True where one of those can be used.
bool take_installed(const std::string& state_dir, ChosenModel& chosen) {
  const Result<InstalledModels> found = installed_models(state_dir);
  if (!found) {
    chosen.passed_over.push_back("installed models are not used: " + found.error().text);
    return false;
  }
  const std::vector<InstalledModel> order = found->in_order();
  if (found->current && (order.empty() || order.front().number != *found->current))
    chosen.passed_over.push_back("the installed model " + std::to_string(*found->current) +
                                 " is not there");
  for (const InstalledModel& model : order) {
    const Status taken = take(model.path, "installed", chosen);
    if (taken) return true;
    chosen.passed_over.push_back("an installed model cannot be used: " + taken.error().text);
  }
  return false;
}

}  // namespace

Result<ChosenModel> choose_model(const Config& config) {
  ChosenModel chosen;
  const bool named = config.origins.contains("model");
  if (!named && take_installed(config.state_dir, chosen)) return chosen;
  const Status taken = take(config.model, named ? "configuration" : "package", chosen);
  if (!taken) return std::unexpected(taken.error());
  return chosen;
}

std::string model_key(const PhaseEngine* engine) {
  if (engine == nullptr) return "none";
  return std::to_string(crc32c(serialize_model(engine->model())));
}

std::chrono::nanoseconds observed_memory_age(const PhaseEngine* engine) {
  if (engine == nullptr) return kMostMemoryAge;
  const std::chrono::duration<double> half_step(engine->model().step_seconds / 2);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::min<std::chrono::duration<double>>(half_step, kMostMemoryAge));
}

}  // namespace cgphase
