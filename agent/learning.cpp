#include "agent/learning.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "agent/stored_runs.h"
#include "policy/learned_json.h"
#include "policy/safety/safety_memory_json.h"

namespace cgphase {
namespace {

// Images whose sums are kept in memory between two runs of a container.
constexpr std::size_t kKnownImages = 256;
// Runs that wait for the history. Above this, the oldest are dropped.
constexpr std::ptrdiff_t kMostPending = 256;
// What the history refused is offered again.
constexpr std::chrono::seconds kRetryInterval{10};
constexpr const char* kBurstsSuffix = "#bursts";
// In this time every run that goes on is saved once.
constexpr std::chrono::nanoseconds kCheckpointInterval = std::chrono::minutes(5);

// Errors: those of Store::load_learned(). Lost runs are stored as ended ones.
Result<LearnedState> load_runs(Store& store, const std::string& key, const std::string& daemon) {
  const Result<nlohmann::json> row = store.load_learned(key);
  if (!row) return std::unexpected(row.error());
  const StoredRuns stored = stored_runs_from_json(*row);
  LearnedState runs = stored.without_live_runs(daemon);
  if (stored.has_lost_runs(daemon)) (void)store.save_learned(key, learned_to_json(runs));
  return runs;
}

// Adds runs to the sums in the history, with one load and one save per image. Runs that could not
// be stored stay in `runs`. A row that cannot be read now is not replaced. `keep` gets the runs
// that the sum in memory lacks, also if they could not be stored.
template <class Learned, class Read, class Merge, class Write, class Keep>
void add_to_history(Store& store, const char* suffix, std::vector<PendingRuns::Run<Learned>>& runs,
                    const Read& read, const Merge& merge, const Write& write, const Keep& keep) {
  std::map<std::string_view, std::vector<PendingRuns::Run<Learned>*>> images;
  for (auto& run : runs) images[run.key].push_back(&run);
  for (const auto& [key, same] : images) {
    const std::string row = std::string(key) + suffix;
    const Result<nlohmann::json> before = store.load_learned(row);
    if (!before && before.error().kind == ErrorKind::io) continue;
    auto sum = read(before.value_or(nlohmann::json()));
    for (const auto* run : same) sum = merge(sum, run->learned);
    const Status saved = store.save_learned(row, write(sum));
    std::vector<Learned> fresh;
    for (auto* run : same) {
      run->stored = saved || saved.error().kind != ErrorKind::io;
      if (!std::exchange(run->counted, true)) fresh.push_back(run->learned);
    }
    if (!fresh.empty()) keep(std::string(key), std::move(sum), std::move(fresh));
  }
  std::erase_if(runs, [](const auto& run) { return run.stored; });
}

}  // namespace

std::size_t PriorRequests::containers() const {
  std::size_t count = 0;
  for (const auto& [key, ids] : learned) count += ids.size();
  return count;
}

void PriorRequests::forget(CgroupId id) {
  for (auto& [key, ids] : learned) std::erase(ids, id);
  std::erase_if(learned, [](const auto& request) { return request.second.empty(); });
}

Learning::Learning(const Environment& environment, History history, std::string model_key,
                   std::string daemon, Post post)
    : parts_(environment), history_(std::move(history)), model_key_(std::move(model_key)),
      daemon_(std::move(daemon)), post_(std::move(post)) {}

void Learning::tick() {
  load_locked_history();
  save_safety_memory(false);
  save_runs(false);
  checkpoint();
  load_priors();
}

void Learning::save_at_stop() {
  for (const ContainerView* view : parts_.core.containers()) {
    add_run(*view, true);
    add_bursts(view->info);
  }
  save_safety_memory(true);
  save_runs(true);
}

bool Learning::take_model(const std::string& key_of_model,
                          const std::shared_ptr<const PhaseEngine>& engine) {
  if (key_of_model == model_key_) return false;
  for (const ContainerView* view : parts_.core.containers()) add_run(*view, false);
  model_key_ = key_of_model;
  parts_.core.set_engine(engine);
  for (const ContainerView* view : parts_.core.containers()) {
    const auto found = known_.find(key(view->info));
    if (found != known_.end())
      parts_.core.admit(view->info.id, {.mode = view->mode, .prior = found->second.learned});
    if (found == known_.end() || !found->second.complete) request_prior(view->info);
  }
  return true;
}

// Loads quarantines, OOM floors and priors of a history that was locked at the start.
void Learning::load_locked_history() {
  if (!history_.locked || history_asked_) return;
  history_asked_ = parts_.store->query([this, post = post_](Store& store) {
    post([this, earlier = load_earlier_runs(store)] { take_history(earlier); });
  });
}

void Learning::take_history(const Result<EarlierRuns>& earlier) {
  history_asked_ = false;
  if (!earlier) return;  // the next tick asks again
  history_ = {.locked = false, .last_written = earlier->last_written, .damage = earlier->damage};
  parts_.core.take_earlier(earlier->safety, parts_.tick.wall_time);
}

// Saves changes at once. What could not be saved is tried again every kRetryInterval.
void Learning::save_safety_memory(bool last) {
  const bool news = parts_.core.drain_safety_news();
  safety_unsaved_ = safety_unsaved_ || news;
  const bool due = news || last || parts_.tick.time >= next_safety_try_;
  // A locked history may have more than this daemon knows.
  if (!parts_.store || history_.locked || !safety_unsaved_ || !due) return;
  next_safety_try_ = parts_.tick.time + kRetryInterval;
  safety_unsaved_ = !parts_.store->query(
      [this, post = post_,
       memory = safety_memory_to_json(parts_.core.safety_memory())](Store& store) {
        if (!store.save_learned(kSafetyMemoryName, memory))
          post([this] { safety_unsaved_ = true; });
      });
}

LearnedState Learning::prior(const ContainerInfo& info) const {
  const auto found = known_.find(key(info));
  return found == known_.end() ? LearnedState{} : found->second.learned;
}

void Learning::request_priors(const ContainerInfo& info) {
  if (!parts_.store) return;
  const std::string image = image_of(info);
  if (!parts_.bursts.knows(image) && std::ssize(requests_.bursts) < kMostPending)
    requests_.bursts.insert(image);
  const auto found = known_.find(key(info));
  if (found == known_.end() || !found->second.complete) request_prior(info);
}

void Learning::request_prior(const ContainerInfo& info) {
  if (parts_.store) requests_.learned[key(info)].push_back(info.id);
}

// Sends all requests of a tick in one query. If too many queries wait, the next tick tries again.
void Learning::load_priors() {
  if (requests_.empty() || history_.locked) return;
  const auto requests = std::make_shared<PriorRequests>(std::exchange(requests_, {}));
  const bool asked = parts_.store->query([this, post = post_, daemon = daemon_,
                                          requests](Store& store) {
    for (const auto& [key, ids] : requests->learned)
      if (Result<LearnedState> stored = load_runs(store, key, daemon))
        post([this, key, ids, stored = std::move(*stored)] { take_prior(key, ids, stored); });
    for (const std::string& image : requests->bursts)
      if (Result<nlohmann::json> stored = store.load_learned(image + kBurstsSuffix))
        post([this, image, stored = std::move(*stored)] { parts_.bursts.remember(image, stored); });
  });
  if (!asked) requests_ = std::move(*requests);
}

void Learning::take_prior(const std::string& image_key, const std::vector<CgroupId>& ids,
                          const LearnedState& stored) {
  if (!known(image_key).complete) take_stored(image_key, stored);
  for (const CgroupId id : ids) {
    const ContainerView* view = parts_.core.find(id);
    if (view != nullptr && key(view->info) == image_key)  // under the same model
      parts_.core.admit(id, {.mode = view->mode, .prior = known(image_key).learned});
  }
}

Learning::Known& Learning::known(const std::string& image_key) {
  if (known_.size() >= kKnownImages && !known_.contains(image_key)) known_.erase(known_.begin());
  return known_[image_key];
}

// Takes the sum of the history, and adds the runs that wait to be stored there.
void Learning::take_stored(const std::string& image_key, LearnedState stored) {
  for (auto& run : pending_.runs) {
    if (run.key != image_key) continue;
    stored = merge_learned(stored, run.learned);
    run.counted = true;
  }
  known(image_key) = {.learned = std::move(stored), .complete = true};
}

void Learning::end_run(const ContainerView& view) {
  add_run(view, false);
  add_bursts(view.info);
}

// The sum in memory gets the run at once, because the next run of the image may begin before the
// history answers. After the last run there is no next one.
void Learning::add_run(const ContainerView& view, bool last) {
  LearnedState run = parts_.core.learned(view.info.id);
  if (is_empty(run)) return;
  std::string image_key = key(view.info);
  bool counted = last;
  if (!last) {
    Known& sum = known(image_key);
    sum.learned = merge_learned(sum.learned, run);
    counted = sum.complete = sum.complete || !parts_.store;
  }
  if (parts_.store) pending_.runs.push_back({std::move(image_key), std::move(run), counted});
}

// Bursts do not depend on the model or the policy, so they have rows of their own.
void Learning::add_bursts(const ContainerInfo& info) {
  const std::optional<RunBursts> run = parts_.bursts.end(info.id);
  if (!run) return;
  const std::string image = image_of(info);
  const bool counted = parts_.bursts.knows(image) || !parts_.store;
  if (counted) parts_.bursts.add(image, *run);
  if (parts_.store) pending_.bursts.push_back({image, *run, counted});
}

void Learning::add_saved_runs(const std::string& image_key, const LearnedState& sum,
                              const std::vector<LearnedState>& fresh) {
  Known& of_image = known(image_key);
  if (!of_image.complete) return take_stored(image_key, sum);
  for (const LearnedState& run : fresh) of_image.learned = merge_learned(of_image.learned, run);
}

void Learning::add_saved_bursts(const std::string& image, const nlohmann::json& sum,
                                const std::vector<RunBursts>& fresh) {
  if (!parts_.bursts.knows(image)) return parts_.bursts.remember(image, sum);
  for (const RunBursts& run : fresh) parts_.bursts.add(image, run);
}

// Runs that could not be stored are tried again every kRetryInterval. The last time comes
// after the samples, because it takes longer and the stop may not wait for its end.
void Learning::save_runs(bool last) {
  if (pending_.empty() || (!last && parts_.tick.time < next_runs_try_)) return;
  const auto pending = std::make_shared<PendingRuns>(std::exchange(pending_, {}));
  std::set<std::string> keys;
  for (const auto& run : pending->runs) keys.insert(run.key);
  const bool asked = parts_.store->query([this, post = post_, daemon = daemon_, pending,
                                          last](Store& store) {
    if (last) static_cast<void>(store.flush());
    const auto read_runs = [&daemon](const nlohmann::json& row) {
      return stored_runs_from_json(row).without_live_runs(daemon);
    };
    add_to_history(store, "", pending->runs, read_runs, merge_learned, learned_to_json,
                   [this, &post](auto image_key, auto sum, auto fresh) {
                     post([=, this] { add_saved_runs(image_key, sum, fresh); });
                   });
    const auto unchanged = [](const nlohmann::json& row) { return row; };
    add_to_history(store, kBurstsSuffix, pending->bursts, unchanged, merge_bursts, unchanged,
                   [this, &post](auto image, auto sum, auto fresh) {
                     post([=, this] { add_saved_bursts(image, sum, fresh); });
                   });
    if (!pending->empty()) post([this, pending] { retry_later(std::move(*pending)); });
  });
  if (!asked) return retry_later(std::move(*pending));
  // The new rows lack the runs that go on.
  if (last) return;
  for (const std::string& image_key : keys) save_live_runs(image_key);
}

// Saves the runs that go on, one image after the other. A daemon that is killed loses only what
// they learned since.
void Learning::checkpoint() {
  const MonotonicTime now = parts_.tick.time;
  if (!parts_.store || history_.locked || now < next_checkpoint_) return;
  std::set<std::string> keys;
  for (const ContainerView* view : parts_.core.containers()) keys.insert(key(view->info));
  if (keys.empty()) return;
  const bool first = next_checkpoint_ == MonotonicTime();
  // Time without containers is not made up for.
  next_checkpoint_ = first ? now : std::max(next_checkpoint_, now - kCheckpointInterval);
  const auto each = kCheckpointInterval / static_cast<std::int64_t>(keys.size());
  // Ticks may be rarer than checkpoints. One tick then makes several.
  for (std::size_t i = 0; i < keys.size() && next_checkpoint_ <= now; ++i) {
    next_checkpoint_ += each;
    if (first) return;
    const auto after = keys.upper_bound(last_checkpoint_);
    last_checkpoint_ = after == keys.end() ? *keys.begin() : *after;
    save_live_runs(last_checkpoint_);
  }
}

// The storage thread makes the sum, because an image may have hundreds of containers.
void Learning::save_live_runs(const std::string& image_key) {
  std::vector<LearnedState> live;
  for (const ContainerView* view : parts_.core.containers())
    if (key(view->info) == image_key) live.push_back(parts_.core.learned(view->info.id));
  std::erase_if(live, is_empty);
  if (live.empty()) return;
  (void)parts_.store->query([daemon = daemon_, image_key, live = std::move(live)](Store& store) {
    const Result<nlohmann::json> before = store.load_learned(image_key);
    if (!before && before.error().kind == ErrorKind::io) return;
    const StoredRuns stored = stored_runs_from_json(before.value_or(nlohmann::json()));
    LearnedState sum;
    for (const LearnedState& one : live) sum = merge_learned(sum, one);
    const StoredRuns row{.ended = stored.without_live_runs(daemon),
                         .unended = StoredRuns::Unended{daemon, std::move(sum)}};
    (void)store.save_learned(image_key, stored_runs_to_json(row));
  });
}

// Puts runs that could not be stored before those that ended since.
void Learning::retry_later(PendingRuns&& older) {
  next_runs_try_ = parts_.tick.time + kRetryInterval;
  const auto put_back = [](auto& runs, auto& before) {
    runs.insert(runs.begin(), std::make_move_iterator(before.begin()),
                std::make_move_iterator(before.end()));
    if (std::ssize(runs) > kMostPending) runs.erase(runs.begin(), runs.end() - kMostPending);
  };
  put_back(pending_.runs, older.runs);
  put_back(pending_.bursts, older.bursts);
}

LearnedState Learning::learned(const ContainerView& view) const {
  return merge_learned(prior(view.info), parts_.core.learned(view.info.id));
}

LearnedState Learning::with_live_runs(LearnedState learned, const std::string& image_key) const {
  for (const ContainerView* view : parts_.core.containers())
    if (key(view->info) == image_key)
      learned = merge_learned(learned, parts_.core.learned(view->info.id));
  return learned;
}

bool Learning::ask_learned(const std::string& image, std::function<void(LearnedState)> take) {
  const std::string image_key = key(image);
  const auto found = known_.find(image_key);
  if (found != known_.end() || !parts_.store) {
    take(with_live_runs(found == known_.end() ? LearnedState{} : found->second.learned, image_key));
    return true;
  }
  return parts_.store->query(
      [this, post = post_, daemon = daemon_, image_key, take = std::move(take)](Store& store) {
        const StoredRuns row =
            stored_runs_from_json(store.load_learned(image_key).value_or(nlohmann::json()));
        post([this, image_key, take, stored = row.without_live_runs(daemon)] {
          take(with_live_runs(stored, image_key));
        });
      });
}

}  // namespace cgphase
