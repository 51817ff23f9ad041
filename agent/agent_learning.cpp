// What the agent learns, and under which model.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "agent/agent.h"

namespace cgphase {
namespace {

// Images whose statistics are kept in memory between two runs of a container.
constexpr std::size_t kLearnedImages = 256;
// Runs that wait for a disk; of more the oldest are given up.
constexpr std::ptrdiff_t kMostTaught = 256;
constexpr const char* kBurstsSuffix = "#bursts";
// In the row of an image: what its runs taught that have not ended, and the daemon that saw them.
constexpr const char* kUnended = "unended";
// In this time what lives is saved once.
constexpr std::chrono::nanoseconds kCheckpointInterval = std::chrono::minutes(5);

// Whether the row has runs that another daemon saw, which was killed before they ended.
bool has_lost_runs(const nlohmann::json& row, const std::string& daemon) {
  const auto unended = row.is_object() ? row.find(kUnended) : row.end();
  return unended != row.end() && unended->is_object() && unended->contains("learned") &&
         unended->value("daemon", nlohmann::json()) != daemon;
}

// What the row has of runs: with lost ones, and without those that this daemon still sees.
nlohmann::json runs_in(nlohmann::json row, const std::string& daemon) {
  if (!row.is_object() || !row.contains(kUnended)) return row;
  const bool lost = has_lost_runs(row, daemon);
  const nlohmann::json unended = row[kUnended];
  row.erase(kUnended);
  if (row.empty()) row = nullptr;
  return lost ? merge_learned(row, unended["learned"]) : row;
}

// As Store::load_learned(). Lost runs are among the ended ones from then on.
Result<nlohmann::json> load_runs(Store& store, const std::string& key,
                                 const std::string& daemon) {
  Result<nlohmann::json> row = store.load_learned(key);
  if (!row) return row;
  nlohmann::json runs = runs_in(*row, daemon);
  if (has_lost_runs(*row, daemon)) (void)store.save_learned(key, runs);
  return runs;
}

// Adds runs to what the database has, with one load and one save for all of an image; those to be
// tried again stay in `runs`. The sum is made where the file is read: the agent's copy may come too
// late, or was given up. What cannot be read now may still be there, and is not replaced by these
// alone. `keep` hears of runs that the agent's copy lacks, also where the disk refuses them.
template <class Taught, class Merge, class Keep>
void add_up(Store& store, const char* suffix, std::vector<TaughtRuns::Run<Taught>>& runs,
            const std::string& daemon, const Merge& merge, const Keep& keep) {
  std::map<std::string_view, std::vector<TaughtRuns::Run<Taught>*>> images;
  for (auto& run : runs) images[run.key].push_back(&run);
  for (const auto& [key, same] : images) {
    const std::string row = std::string(key) + suffix;
    const Result<nlohmann::json> before = store.load_learned(row);
    if (!before && before.error().kind == ErrorKind::io) continue;
    nlohmann::json sum = runs_in(before.value_or(nlohmann::json()), daemon);
    for (const auto* run : same) sum = merge(sum, run->taught);
    const Status saved = store.save_learned(row, sum);
    std::vector<Taught> fresh;
    for (auto* run : same) {
      run->stored = saved || saved.error().kind != ErrorKind::io;
      if (!std::exchange(run->counted, true)) fresh.push_back(run->taught);
    }
    if (!fresh.empty()) keep(std::string(key), std::move(sum), std::move(fresh));
  }
  std::erase_if(runs, [](const auto& run) { return run.stored; });
}

}  // namespace

std::string Agent::learning_key(const ContainerInfo& info) const {
  return learning_key(image_of(info));
}

bool Agent::take_model(ChosenModel model) {
  const std::string key = model_key(model.engine.get());
  parts_.model = std::move(model);
  if (key == model_key_) return false;
  for (const ContainerView* view : parts_.pipeline.containers()) learn(*view, false);
  model_key_ = key;
  parts_.pipeline.set_engine(parts_.model.engine);
  parts_.sampler.set_observed_memory_age(observed_memory_age(parts_.model.engine.get()));
  for (const ContainerView* view : parts_.pipeline.containers()) {
    const auto known = learned_.find(learning_key(view->info));
    if (known != learned_.end())
      parts_.pipeline.admit(view->info.id, {.mode = view->mode, .prior = known->second.taught});
    if (known == learned_.end() || !known->second.whole) want_prior(view->info);
  }
  return true;
}

// Quarantines, OOM floors and priors of a history that was locked at the start, once it is free.
void Agent::take_up_history() {
  if (!parts_.history_locked || history_asked_) return;
  history_asked_ = parts_.store->query([this](Store& store) {
    post_([this, earlier = load_earlier_runs(store)] { take_earlier(earlier); });
  });
}

void Agent::take_earlier(const Result<EarlierRuns>& earlier) {
  history_asked_ = false;
  if (!earlier) return;  // asked again in the next tick
  parts_.history_locked = false;
  parts_.last_written = earlier->last_written;
  history_damage_ = earlier->damage;
  parts_.pipeline.take_earlier(earlier->rails, tick_.wall_time);
}

// The prior comes from the database a moment later; where it does not, the container has what waits
// for the database, or learns anew.
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
  if (wanted_.empty() || parts_.history_locked) return;
  const auto wanted = std::make_shared<WantedPriors>(std::exchange(wanted_, {}));
  const bool asked = parts_.store->query([this, wanted](Store& store) {
    for (const auto& [key, ids] : wanted->learned)
      if (Result<nlohmann::json> prior = load_runs(store, key, daemon_))
        post_([this, key, ids, prior = std::move(*prior)] { take_prior(key, ids, prior); });
    for (const std::string& image : wanted->bursts)
      if (Result<nlohmann::json> stored = store.load_learned(image + kBurstsSuffix))
        post_([this, image, stored = std::move(*stored)] { bursts_.remember(image, stored); });
  });
  if (!asked) wanted_ = std::move(*wanted);
}

void Agent::take_prior(const std::string& key, const std::vector<CgroupId>& ids,
                       const nlohmann::json& prior) {
  if (!known_runs(key).whole) take_stored(key, prior);  // what this run teaches is added to it
  for (const CgroupId id : ids) {
    const ContainerView* view = parts_.pipeline.find(id);
    if (view != nullptr && learning_key(view->info) == key)  // no other model came meanwhile
      parts_.pipeline.admit(id, {.mode = view->mode, .prior = known_runs(key).taught});
  }
}

KnownRuns& Agent::known_runs(const std::string& key) {
  if (learned_.size() >= kLearnedImages && !learned_.contains(key))
    learned_.erase(learned_.begin());
  return learned_[key];
}

// What the database has, and with it what waits to be added there.
void Agent::take_stored(const std::string& key, nlohmann::json stored) {
  for (auto& run : taught_.runs) {
    if (run.key != key) continue;
    stored = merge_learned(stored, run.taught);
    run.counted = true;
  }
  known_runs(key) = {.taught = std::move(stored), .whole = true};
}

// The next run of the image may begin before the database was asked, or while the disk refuses;
// after the last there is none.
void Agent::learn(const ContainerView& view, bool last) {
  nlohmann::json run = parts_.pipeline.learned(view.info.id);
  if (run.is_null()) return;
  std::string key = learning_key(view.info);
  bool counted = last;
  if (!last) {
    KnownRuns& known = known_runs(key);
    known.taught = merge_learned(known.taught, run);
    counted = known.whole = known.whole || !parts_.store;
  }
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

void Agent::keep_runs(const std::string& key, const nlohmann::json& sum,
                      const std::vector<nlohmann::json>& fresh) {
  KnownRuns& known = known_runs(key);
  if (!known.whole) return take_stored(key, sum);
  for (const nlohmann::json& run : fresh) known.taught = merge_learned(known.taught, run);
}

void Agent::keep_bursts(const std::string& image, const nlohmann::json& sum,
                        const std::vector<RunBursts>& fresh) {
  if (!bursts_.knows(image)) return bursts_.remember(image, sum);
  for (const RunBursts& run : fresh) bursts_.add(image, run);
}

// What the disk refused is tried again at the pace of the history, and the last time in any case:
// then after the samples, for it takes longer, and the end may not be waited for.
void Agent::save_taught(bool last) {
  if (taught_.empty() || (!last && tick_.time < next_taught_try_)) return;
  const auto taught = std::make_shared<TaughtRuns>(std::exchange(taught_, {}));
  std::set<std::string> images;
  for (const auto& run : taught->runs) images.insert(run.key);
  const bool asked = parts_.store->query([this, taught, last](Store& store) {
    if (last) static_cast<void>(store.flush());
    add_up(store, "", taught->runs, daemon_, merge_learned,
           [this](auto key, auto sum, auto fresh) {
             post_([=, this] { keep_runs(key, sum, fresh); });
           });
    add_up(store, kBurstsSuffix, taught->bursts, daemon_, merge_bursts,
           [this](auto image, auto sum, auto fresh) {
             post_([=, this] { keep_bursts(image, sum, fresh); });
           });
    if (!taught->empty()) post_([this, taught] { keep_taught(std::move(*taught)); });
  });
  if (!asked) return keep_taught(std::move(*taught));
  // The row of an image is written anew, without what its containers teach that live on.
  if (last) return;
  for (const std::string& image : images) save_unended(image);
}

// What the containers of an image have taught so far, one image after the other: a daemon that is
// killed forgets no more than was learned since.
void Agent::checkpoint() {
  if (!parts_.store || parts_.history_locked || tick_.time < next_checkpoint_) return;
  std::set<std::string> images;
  for (const ContainerView* view : parts_.pipeline.containers())
    images.insert(learning_key(view->info));
  if (images.empty()) return;
  const bool first = next_checkpoint_ == MonotonicTime();
  // Of a time in which nothing lived nothing is made up for.
  next_checkpoint_ = first ? tick_.time
                           : std::max(next_checkpoint_, tick_.time - kCheckpointInterval);
  const auto each = kCheckpointInterval / static_cast<std::int64_t>(images.size());
  // Several at once where readings are rarer than that.
  for (std::size_t i = 0; i < images.size() && next_checkpoint_ <= tick_.time; ++i) {
    next_checkpoint_ += each;
    if (first) return;
    const auto after = images.upper_bound(last_checkpoint_);
    last_checkpoint_ = after == images.end() ? *images.begin() : *after;
    save_unended(last_checkpoint_);
  }
}

// The sum is made by the thread that owns the file: an image may have hundreds of containers.
void Agent::save_unended(const std::string& key) {
  std::vector<nlohmann::json> live;
  for (const ContainerView* view : parts_.pipeline.containers())
    if (learning_key(view->info) == key) live.push_back(parts_.pipeline.learned(view->info.id));
  std::erase_if(live, [](const nlohmann::json& one) { return one.is_null(); });
  if (live.empty()) return;
  (void)parts_.store->query([this, key, live = std::move(live)](Store& store) {
    const Result<nlohmann::json> before = store.load_learned(key);
    if (!before && before.error().kind == ErrorKind::io) return;
    nlohmann::json row = runs_in(before.value_or(nlohmann::json()), daemon_), sum;
    for (const nlohmann::json& one : live) sum = merge_learned(sum, one);
    if (!row.is_object()) row = nlohmann::json::object();
    row[kUnended] = {{"daemon", daemon_}, {"learned", sum}};
    (void)store.save_learned(key, row);
  });
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
  return merge_learned(earlier == learned_.end() ? nlohmann::json() : earlier->second.taught,
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
    take(with_live(known == learned_.end() ? nlohmann::json() : known->second.taught, key));
    return true;
  }
  return parts_.store->ask([this, key, take = std::move(take)](Store& store) {
    nlohmann::json row = store.load_learned(key).value_or(nlohmann::json());
    post_([this, key, take, stored = runs_in(std::move(row), daemon_)] {
      take(with_live(stored, key));
    });
  });
}

}  // namespace cgphase
