// What the agent learns, and under which model.
#include <iterator>
#include <memory>
#include <utility>

#include "agent/agent.h"

namespace cgphase {
namespace {

// Images whose statistics are kept in memory between two runs of a container.
constexpr std::size_t kLearnedImages = 256;
// Runs that wait for a disk; of more the oldest are given up.
constexpr std::ptrdiff_t kMostTaught = 256;
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
    else
      want_prior(view->info);
  }
  return true;
}

// The prior comes from the database a moment later; where it does not, the container learns anew.
void Agent::want_prior(const ContainerInfo& info) {
  if (!parts_.store) return;
  wanted_.learned[learning_key(info)].push_back(info.id);
}

std::size_t Agent::wanted_priors() const {
  std::size_t count = 0;
  for (const auto& [key, ids] : wanted_.learned) count += ids.size();
  return count;
}

void Agent::want_bursts(const ContainerInfo& info) {
  if (!parts_.store) return;
  const std::string& image = image_of(info);
  if (!bursts_.knows(image) && std::ssize(wanted_.bursts) < kMostTaught)
    wanted_.bursts.insert(image);
}

// All of a tick in one query; while too many wait it is asked again in the next.
void Agent::ask_wanted() {
  if (wanted_.empty()) return;
  const auto wanted = std::make_shared<WantedPriors>(std::exchange(wanted_, {}));
  const bool asked = parts_.store->query([this, wanted](Store& store) {
    for (const auto& [key, ids] : wanted->learned)
      if (Result<nlohmann::json> prior = store.load_learned(key))
        post_([this, key, ids, prior = std::move(*prior)] { take_prior(key, ids, prior); });
    for (const std::string& image : wanted->bursts)
      if (Result<nlohmann::json> stored = store.load_learned(image + kBurstsSuffix))
        post_([this, image, stored = std::move(*stored)] { bursts_.remember(image, stored); });
  });
  if (!asked) wanted_ = std::move(*wanted);
}

void Agent::take_prior(const std::string& key, const std::vector<CgroupId>& ids,
                       const nlohmann::json& prior) {
  if (!learned_.contains(key)) keep_learned(key, prior);  // what this run teaches is added to it
  for (const CgroupId id : ids) {
    const ContainerView* view = parts_.pipeline.find(id);
    if (view != nullptr && learning_key(view->info) == key)  // no other model came meanwhile
      parts_.pipeline.admit(id, {.mode = view->mode, .prior = prior});
  }
}

void Agent::keep_learned(const std::string& key, nlohmann::json known) {
  if (learned_.size() >= kLearnedImages && !learned_.contains(key))
    learned_.erase(learned_.begin());
  learned_[key] = std::move(known);
}

void Agent::learn(const ContainerView& view) {
  nlohmann::json run = parts_.pipeline.learned(view.info.id);
  if (run.is_null()) return;
  std::string key = learning_key(view.info);
  const auto known = learned_.find(key);
  const bool counted = known != learned_.end() || !parts_.store;
  if (counted)
    keep_learned(key, merge_learned(known == learned_.end() ? nlohmann::json() : known->second,
                                    run));
  if (parts_.store) taught_.runs.push_back({std::move(key), std::move(run), counted});
}

// Bursts belong to no model and no policy: other rows than those of learning_key().
void Agent::learn_bursts(const ContainerInfo& info) {
  const std::optional<RunBursts> run = bursts_.end(info.id);
  if (!run) return;
  const std::string& image = image_of(info);
  const bool counted = bursts_.knows(image) || !parts_.store;
  if (counted) bursts_.add(image, *run);
  if (parts_.store) taught_.bursts.push_back({image, *run, counted});
}

// The sum is made where the file is read: the copy here may come too late, or was given up. What
// cannot be read now may still be there, and is not replaced by this run alone. False: to be tried
// again.
bool Agent::add_run(Store& store, const TaughtRuns::Run& run) {
  const Result<nlohmann::json> stored = store.load_learned(run.key);
  if (!stored && stored.error().kind == ErrorKind::io) return false;
  nlohmann::json sum = merge_learned(stored.value_or(nlohmann::json()), run.learned);
  if (const Status saved = store.save_learned(run.key, sum);
      !saved && saved.error().kind == ErrorKind::io)
    return false;
  if (run.counted) return true;
  post_([this, run, sum = std::move(sum)] {
    const auto known = learned_.find(run.key);
    keep_learned(run.key,
                 known == learned_.end() ? sum : merge_learned(known->second, run.learned));
  });
  return true;
}

bool Agent::add_bursts(Store& store, const TaughtRuns::Bursts& bursts) {
  const std::string key = bursts.image + kBurstsSuffix;
  const Result<nlohmann::json> stored = store.load_learned(key);
  if (!stored && stored.error().kind == ErrorKind::io) return false;
  nlohmann::json sum = merge_bursts(stored.value_or(nlohmann::json()), bursts.run);
  if (const Status saved = store.save_learned(key, sum);
      !saved && saved.error().kind == ErrorKind::io)
    return false;
  if (bursts.counted) return true;
  post_([this, bursts, sum = std::move(sum)] {
    if (bursts_.knows(bursts.image)) bursts_.add(bursts.image, bursts.run);
    else bursts_.remember(bursts.image, sum);
  });
  return true;
}

// What the disk refused is tried again at the pace of the history, and the last time in any case.
void Agent::save_taught(bool last) {
  if (taught_.empty() || (!last && tick_.time < next_taught_try_)) return;
  const auto taught = std::make_shared<TaughtRuns>(std::exchange(taught_, {}));
  const bool asked = parts_.store->query([this, taught](Store& store) {
    std::erase_if(taught->runs, [&](const auto& run) { return add_run(store, run); });
    std::erase_if(taught->bursts, [&](const auto& bursts) { return add_bursts(store, bursts); });
    if (!taught->empty()) post_([this, taught] { keep_taught(std::move(*taught)); });
  });
  if (!asked) keep_taught(std::move(*taught));
}

// What is older than what came meanwhile.
void Agent::keep_taught(TaughtRuns&& older) {
  next_taught_try_ = tick_.time + Store::kFlushInterval;
  const auto put_back = [](auto& runs, auto& before) {
    runs.insert(runs.begin(), std::make_move_iterator(before.begin()),
                std::make_move_iterator(before.end()));
    if (std::ssize(runs) > kMostTaught) runs.erase(runs.begin(), runs.end() - kMostTaught);
  };
  put_back(taught_.runs, older.runs);
  put_back(taught_.bursts, older.bursts);
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
  return parts_.store->ask([this, key, take = std::move(take)](Store& store) {
    post_([this, key, take, stored = store.load_learned(key).value_or(nlohmann::json())] {
      take(with_live(stored, key));
    });
  });
}

}  // namespace cgphase
