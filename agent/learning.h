// What runs of containers learn. Runs of one image under one model add up: in memory for the next
// run, and in the history for the next daemon.
//
// The sum in the history is made by the storage thread, which owns the file. The sum in memory may
// lack runs, because the history answers later or not at all.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "agent/earlier_runs.h"
#include "agent/observers/burst_watch.h"
#include "agent/pending_runs.h"
#include "base/clock.h"
#include "core/core.h"
#include "storage/store_thread.h"

namespace cgphase {

// Owned by the agent and used by its thread alone.
class Learning {
 public:
  // Runs a function on the agent's thread, from any thread.
  using Post = std::function<void(std::function<void()>)>;
  // All of these outlive this object.
  struct Environment {
    Core& core;
    BurstWatch& bursts;
    StoreThread* store;      // null: history is off
    const NodeSample& tick;  // the current tick, for its times
  };
  // Another process may lock the history. What earlier runs learned is then loaded later.
  struct History {
    bool locked = false;
    std::optional<WallTime> last_written;  // a limit, by an earlier run
    std::string damage = {};               // what was lost; empty: nothing
  };
  // `daemon` names this run of the daemon, and no other.
  Learning(const Environment& environment, History history, std::string model_key,
           std::string daemon, Post post);

  // The sum in memory for the container's image. Empty if there is none.
  LearnedState prior(const ContainerInfo& info) const;
  // Call it after the container is admitted. Asks the history for what memory lacks of its image.
  // The container gets that prior in a later tick.
  void request_priors(const ContainerInfo& info);
  // The container vanished. Adds what its run learned.
  void end_run(const ContainerView& view);
  void forget_requests(CgroupId id) { requests_.forget(id); }
  std::size_t requested_priors() const { return requests_.containers(); }

  // Uses another model from the next tick on. What was learned under the current model is kept for
  // it. False if `key` is the current model's.
  bool take_model(const std::string& key, const std::shared_ptr<const PhaseEngine>& engine);

  // Call it at the end of each tick. Loads and saves what is due.
  void tick();
  // Call it once, before the history ends. Saves everything.
  void save_at_stop();

  // What is known of a container: its run so far, added to earlier runs of its image.
  LearnedState learned(const ContainerView& view) const;
  // The same of an image, with all its containers that run. `take` is called at once, or later from
  // a tick. False if too many queries wait for the history.
  bool ask_learned(const std::string& image, std::function<void(LearnedState)> take);

  const History& history() const { return history_; }

 private:
  // What memory has of an image.
  struct Known {
    LearnedState learned;
    bool complete = false;  // includes what the history has
  };

  std::string key(const std::string& image) const { return image + "#" + model_key_; }
  std::string key(const ContainerInfo& info) const { return key(image_of(info)); }
  Known& known(const std::string& key);
  LearnedState with_live_runs(LearnedState learned, const std::string& key) const;

  void load_locked_history();
  void take_history(const Result<EarlierRuns>& earlier);
  void save_safety_memory(bool last);

  void request_prior(const ContainerInfo& info);
  void load_priors();
  void take_prior(const std::string& key, const std::vector<CgroupId>& ids,
                  const LearnedState& stored);
  void take_stored(const std::string& key, LearnedState stored);

  void add_run(const ContainerView& view, bool last);
  void add_bursts(const ContainerInfo& info);
  void save_runs(bool last);
  void add_saved_runs(const std::string& key, const LearnedState& sum,
                      const std::vector<LearnedState>& fresh);
  void add_saved_bursts(const std::string& image, const nlohmann::json& sum,
                        const std::vector<RunBursts>& fresh);
  void retry_later(PendingRuns&& older);

  void checkpoint();
  void save_live_runs(const std::string& key);

  Environment parts_;
  History history_;
  std::string model_key_;
  const std::string daemon_;
  Post post_;
  std::map<std::string, Known> known_;  // by key(), bounded
  PendingRuns pending_;                 // while the store takes no more
  PriorRequests requests_;              // likewise
  bool history_asked_ = false;
  bool safety_unsaved_ = false;
  MonotonicTime next_safety_try_, next_runs_try_, next_checkpoint_;
  std::string last_checkpoint_;  // a key()
};

}  // namespace cgphase
