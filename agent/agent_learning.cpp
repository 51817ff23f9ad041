// What the agent learns, and under which model.
#include <utility>

#include "agent/agent.h"

namespace cgphase {
namespace {

// Images whose statistics are kept in memory between two runs of a container.
constexpr std::size_t kLearnedImages = 256;
constexpr const char* kBurstsSuffix = "#bursts";

}  // namespace

std::string Agent::learning_key(const ContainerInfo& info) const {
  return learning_key(image_of(info));
}

bool Agent::take_model(ChosenModel model) {
  const std::string key = model_key(model.engine.get());
  parts_.model = std::move(model);
  if (key == model_key_) return false;
  for (const ContainerView* view : parts_.pipeline.containers()) learn(*view);
  model_key_ = key;
  parts_.pipeline.set_engine(parts_.model.engine);
  parts_.sampler.set_observed_memory_age(observed_memory_age(parts_.model.engine.get()));
  for (const ContainerView* view : parts_.pipeline.containers()) {
    const auto known = learned_.find(learning_key(view->info));
    if (known != learned_.end())
      parts_.pipeline.admit(view->info.id, {.mode = view->mode, .prior = known->second});
    else if (parts_.store)
      ask_prior(view->info);
  }
  return true;
}

// The prior comes from the database a moment later; where it does not, the container learns anew.
void Agent::ask_prior(const ContainerInfo& info) {
  (void)parts_.store->query([this, id = info.id, key = learning_key(info)](Store& store) {
    Result<nlohmann::json> prior = store.load_learned(key);
    if (!prior) return;
    post_([this, id, key, prior = std::move(*prior)]() {
      learned_.try_emplace(key, prior);  // what this run teaches is added to it
      const ContainerView* view = parts_.pipeline.find(id);
      if (view != nullptr && learning_key(view->info) == key)  // no other model came meanwhile
        parts_.pipeline.admit(id, {.mode = view->mode, .prior = prior});
    });
  });
}

void Agent::learn(const ContainerView& view) {
  const nlohmann::json run = parts_.pipeline.learned(view.info.id);
  if (run.is_null()) return;
  const std::string key = learning_key(view.info);
  if (learned_.size() >= kLearnedImages && !learned_.contains(key))
    learned_.erase(learned_.begin());
  nlohmann::json& known = learned_[key];
  known = merge_learned(known, run);
  if (!parts_.store) return;
  (void)parts_.store->query([key, learned = known](Store& store) {
    (void)store.save_learned(key, learned);
  });
}

// Bursts belong to no model and no policy: other rows than those of learning_key().
void Agent::learn_bursts(const ContainerInfo& info) {
  std::optional<nlohmann::json> known = bursts_.end(info.id, image_of(info));
  if (!known || !parts_.store) return;
  (void)parts_.store->query([key = image_of(info) + kBurstsSuffix,
                             known = std::move(*known)](Store& store) {
    (void)store.save_learned(key, known);
  });
}

void Agent::load_bursts(const ContainerInfo& info) {
  if (bursts_.knows(image_of(info))) return;
  (void)parts_.store->query([this, image = image_of(info)](Store& store) {
    Result<nlohmann::json> stored = store.load_learned(image + kBurstsSuffix);
    if (stored) post_([this, image, stored = std::move(*stored)] {
      bursts_.remember(image, stored);
    });
  });
}

nlohmann::json Agent::bursts(const ContainerView& view) const {
  return bursts_.report(view.info.id, image_of(view.info));
}

nlohmann::json Agent::learned(const ContainerView& view) const {
  const auto earlier = learned_.find(learning_key(view.info));
  return merge_learned(earlier == learned_.end() ? nlohmann::json() : earlier->second,
                       parts_.pipeline.learned(view.info.id));
}

nlohmann::json Agent::with_live(nlohmann::json known, const std::string& key) const {
  for (const ContainerView* view : parts_.pipeline.containers())
    if (learning_key(view->info) == key)
      known = merge_learned(known, parts_.pipeline.learned(view->info.id));
  return known;
}

bool Agent::ask_learned(const std::string& image, std::function<void(nlohmann::json)> take) {
  const std::string key = learning_key(image);
  const auto known = learned_.find(key);
  if (known != learned_.end() || !parts_.store) {
    take(with_live(known == learned_.end() ? nlohmann::json() : known->second, key));
    return true;
  }
  return parts_.store->query([this, key, take = std::move(take)](Store& store) {
    post_([this, key, take, stored = store.load_learned(key).value_or(nlohmann::json())] {
      take(with_live(stored, key));
    });
  });
}

}  // namespace cgphase
