// The agent: one tick after another, from reading to writing, and the state that questions are
// answered from. Knows nothing of sockets, signals or event loops (agent/daemon.h does).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/chosen_model.h"
#include "agent/config/config.h"
#include "agent/earlier_runs.h"
#include "agent/holds.h"
#include "agent/logging/change_log.h"
#include "agent/logging/journal_share.h"
#include "agent/observers/burst_watch.h"
#include "agent/observers/foreign_writes.h"
#include "agent/observers/gpu_usage.h"
#include "agent/observers/gpu_watch.h"
#include "agent/observers/neighbourhood.h"
#include "agent/observers/outside_use.h"
#include "agent/observers/program_watch.h"
#include "agent/taught_runs.h"
#include "base/clock.h"
#include "base/result.h"
#include "collectors/ebpf/probe_source.h"
#include "collectors/node_sampler.h"
#include "control/fast_path/guard.h"
#include "control/writer/kernel_limit_writer.h"
#include "core/pipeline.h"
#include "storage/store_thread.h"

namespace cgphase {

// Owned and used by the agent's thread alone.
class Agent {
 public:
  struct Parts {
    NodeSampler sampler;
    Pipeline pipeline;
    LimitWriter* writer = nullptr;               // null where nothing may be written
    KernelLimitWriter* kernel_writer = nullptr;  // the same object where it is the real one
    Guard* guard = nullptr;                      // may be null
    std::unique_ptr<ProbeSource> probes;         // may be null: nothing is asked of BPF
    std::unique_ptr<GpuLooks> gpu_looks;         // never null
    std::unique_ptr<GpuSource> gpus;             // may be null: GPUs are not read
    std::unique_ptr<StoreThread> store;          // may be null: history is off
    bool history_locked = false;                 // the store was not open yet when it was made
    std::optional<WallTime> last_written = {};   // a limit, by an earlier run
    ChosenModel model;                           // the pipeline's
    Holds holds;                                 // what administrators asked for before
    ChangeLog* log = nullptr;                    // may be null: nothing is told
  };
  // Runs a function on the agent's thread, from any thread; how the store's answers come back.
  using Post = std::function<void(std::function<void()>)>;

  Agent(Config config, Parts parts, const Clock& clock, Post post);

  // One tick: kill switch, neighbours, sampling, pipeline, writing, history.
  void tick();
  // The control loop lives: kill switch and heartbeat, in the same loop as the ticks and at least
  // twice a second, however long the interval between ticks is.
  void beat();
  // To be called when result_fd() or guard_fd() is readable; -1 where there is none.
  void take_results();
  void take_guard_actions();
  int result_fd() const;
  int guard_fd() const;
  // True once after somebody else wrote a limit of ours: what it means is for the next tick to
  // judge, which should not wait for its turn.
  bool take_look_request() { return std::exchange(look_requested_, false); }

  // New configuration: modes at once, rails for containers that appear from now on, the guard's
  // numbers for those that it watches from now on; the next tick looks for other managers.
  // What cannot change while running (roots, directories) is told, one sentence each.
  std::vector<std::string> reload(Config config);
  // Another model from the next tick on (Pipeline::set_engine); limits stay. What was learned of
  // phases is kept for the model it belongs to, and what earlier runs taught of this one's is taken
  // up. False where it is the same model as before.
  bool take_model(ChosenModel model);
  // Puts every original back and stores what was learned. The agent only observes afterwards.
  LimitWriter::RestoreReport restore_all();
  LimitWriter::RestoreReport restore(CgroupId id, Reason reason = Reason::restored);
  LimitWriter::RestoreReport stop();
  // After stop(): stores what was learned and ends the history.
  Status store_all();

  // Acting on behalf of an administrator. What leaves enforce is restored; the report says how that
  // went. A mode lasts until it is changed (agent/holds.h), or until this process ends. Absent: as
  // the configuration says. The mode of the host is for containers without a mode of their own, but
  // observe is the ceiling for every container. Modes of containers stay when it changes.
  LimitWriter::RestoreReport set_mode(std::optional<Mode> mode, bool until_restart = false);
  // It ends with the container where it is not kept_by_name().
  LimitWriter::RestoreReport set_mode(CgroupId id, std::optional<Mode> mode,
                                      bool until_restart = false);
  // Of containers of this printable name, running or not; how many there were.
  std::size_t forget_modes(const std::string& name);
  // Lasts until it is taken back.
  LimitWriter::RestoreReport set_paused(CgroupId id, bool paused);
  // False while there is no dead-man companion: everything is restored and only observed.
  void set_writable(bool writable);

  // What questions are answered from.
  struct Totals {
    std::uint64_t ticks = 0, writes_up = 0, writes_down = 0, trials_reverted = 0, writes_failed = 0;
    double saved_core_seconds = 0, saved_byte_seconds = 0;  // of containers that are gone
  };
  const Config& config() const { return config_; }
  const Pipeline& pipeline() const { return parts_.pipeline; }
  const Totals& totals() const { return totals_; }
  std::uint64_t impossible_samples() const { return parts_.sampler.impossible_samples(); }
  std::vector<Source> sources() const;
  std::uint64_t store_size_bytes() const;
  // When a limit was last written by an earlier run, as far as the history knows.
  std::optional<WallTime> last_written() const { return parts_.last_written; }
  StoreThread* store() { return parts_.store.get(); }
  const PhaseEngine* engine() const { return parts_.model.engine.get(); }
  const ChosenModel& model() const { return parts_.model; }
  bool kill_switch() const { return kill_switch_; }
  bool may_write() const { return parts_.writer != nullptr && writable_; }
  // Why nothing is written for now on a host that could be written to; empty: it is.
  const char* unwritable() const;
  // Of the host, as the configuration has it.
  Mode configured_mode() const { return configured_mode_; }
  // As the configuration and commands have it, were it not paused and could all be written.
  Mode asked_mode(const ContainerInfo& info) const;
  // That a command set for it alone; not held under the mode of the host.
  std::optional<AskedMode> own_mode(const ContainerInfo& info) const;
  // A name that an ordinary user can give to another container is no permission.
  bool kept_by_name(const ContainerInfo& info, Mode mode) const {
    return info.made_by_root || mode <= mode_for(config_, info);
  }
  // No container gets more than this: observe if a command set the host to it.
  Mode mode_ceiling() const;
  // Containers whose own mode is above it.
  std::vector<const ContainerView*> capped() const;
  const Holds& holds() const { return parts_.holds; }
  // Its CPU quota is never lowered, because it has a GPU or may have one.
  bool keeps_cpu_quota(CgroupId id) const {
    return gpus_.may_have_gpu(id) && !config_.rails.lower_gpu_quota;
  }
  // Runs `then` when all that was asked is on disk, with why it is not where that fails or takes
  // longer than kSavePatience.
  using AfterSave = std::function<void(const std::string& error)>;
  void after_save(AfterSave then);
  bool paused(const ContainerInfo& info) const { return parts_.holds.of(info).paused; }
  // For as long as it or the daemon runs.
  void set_pin(CgroupId id, const Pin& pin) { parts_.pipeline.set_pin(id, pin); }
  // Why nothing is written on this host at all: somebody else sets limits here. Empty: nobody.
  const std::string& standing_down() const { return neighbourhood_.standing_down(); }
  // Why this container is never written to; empty when it may be.
  const std::string& hands_off(const ContainerInfo& info) const {
    return info.hands_off.empty() ? standing_down() : info.hands_off;
  }
  MonotonicTime last_tick() const { return tick_.time; }
  const HostCapacity& host() const { return tick_.host; }
  const OutsideUse& outside() const { return outside_; }
  const GpuUsage& gpu_usage() const { return gpu_usage_; }
  // What is known of a container: what its run taught, added to what earlier runs did.
  nlohmann::json learned(const ContainerView& view) const;
  // The same of an image, or of a name where containers have none; later, and null where nothing
  // is known. False when too much waits for the disk.
  bool ask_learned(const std::string& image, std::function<void(nlohmann::json)> take);
  // Of its waits for a processor; nothing where they are not counted.
  std::optional<RunQueueHistogram> run_queue_histogram(CgroupId id) const {
    return parts_.probes ? parts_.probes->run_queue_histogram(id) : std::nullopt;
  }
  // Idle and burst of its network and GPUs, as BurstWatch::report() has them.
  nlohmann::json bursts(const ContainerView& view) const;
  // Containers that are to hear of earlier runs, and have not been asked about.
  std::size_t wanted_priors() const;
  std::vector<std::string> degraded() const;
  // The newest entries of the journal, also where history is off. Oldest first, bounded.
  const std::deque<JournalDecision>& recent_decisions() const { return recent_decisions_; }
  const JournalShare& journal_share() const { return journal_share_; }
  const std::deque<JournalOutcome>& recent_outcomes() const { return recent_outcomes_; }
  // Of these, what goes to the history with the next tick.
  const std::vector<JournalDecision>& unsaved_decisions() const { return unsaved_decisions_; }
  const std::vector<JournalOutcome>& unsaved_outcomes() const { return unsaved_outcomes_; }

 private:
  std::string learning_key(const ContainerInfo& info) const;
  std::string learning_key(const std::string& image) const { return image + "#" + model_key_; }
  // `known`, and what the containers that live add to it.
  nlohmann::json with_live(nlohmann::json known, const std::string& key) const;
  Mode mode_of(const ContainerInfo& info) const;
  Care care_of(const ContainerInfo& info) const;
  LimitWriter::RestoreReport apply_modes();
  ModeRequest changed(ModeRequest request, std::optional<Mode> mode, bool until_restart) const;
  void follow_host_mode();
  void save_holds();
  void answer_saved();
  void watch_kill_switch();
  void watch_kill_switch_in_tick();
  void watch_neighbours();
  void renew_care();
  void adopt_after_revocation();
  void welcome(const ContainerInfo& info);
  Limits restore_found(CgroupId id);
  void farewell(CgroupId id);
  void submit(const Decision& decision);
  void take_up_history();
  void take_earlier(const Result<EarlierRuns>& earlier);
  void want_prior(const ContainerInfo& info);
  void want_bursts(const ContainerInfo& info);
  void ask_wanted();
  void take_prior(const std::string& key, const std::vector<CgroupId>& ids,
                  const nlohmann::json& prior);
  KnownRuns& known_runs(const std::string& key);
  void take_stored(const std::string& key, nlohmann::json stored);
  void learn(const ContainerView& view, bool last);
  void learn_bursts(const ContainerInfo& info);
  void save_taught(bool last);
  void checkpoint();
  void save_unended(const std::string& key);
  void keep_taught(TaughtRuns&& older);
  void keep_runs(const std::string& key, const nlohmann::json& sum,
                 const std::vector<nlohmann::json>& fresh);
  void keep_bursts(const std::string& image, const nlohmann::json& sum,
                   const std::vector<RunBursts>& fresh);
  void store_rails_memory(bool last);
  void note_restored(const ContainerView& view, Reason reason, std::span<const Knob> left);
  WallTime wall_of(MonotonicTime time) const;
  const ContainerView* logged(CgroupId id) const;
  void remember(const Decision& decision);
  void remember(const Outcome& outcome);
  void remember_written(const Decision& decision, const Limits& in_force, std::string by);
  ProgramWatch::Surroundings around_programs() const;
  void watch_programs();
  void take_limit_writes();
  std::string writer_of(const Decision& decision) const;
  void squeeze_cache();
  void remember_outcomes();
  void follow_clock();
  void store_tick();

  Config config_;         // its mode is the one in force
  Mode configured_mode_;  // what the configuration says
  const Clock& clock_;
  Post post_;
  Parts parts_;  // after what its threads use
  std::string model_key_;
  const std::string daemon_;  // this run of it, told from all others
  Counter clock_start_ms_;  // of stored points
  NodeSample tick_;
  OutsideUse outside_;
  Neighbourhood neighbourhood_;
  GpuWatch gpus_;
  GpuUsage gpu_usage_;
  BurstWatch bursts_;
  ForeignWrites foreign_writes_;
  JournalShare journal_share_;
  ProgramWatch programs_;
  bool listening_ = false;  // the guard, to programs that start
  Totals totals_;
  bool kill_switch_ = false;
  std::optional<MonotonicTime> kill_switch_time_;  // looked for
  bool writable_ = true;
  std::uint64_t outside_writes_ = 0;  // told by the guard so far
  bool look_requested_ = false;
  std::map<std::uint64_t, std::string> write_errors_;  // by decision, since the last tick
  MonotonicTime next_squeeze_;
  // Above the configured ones, of containers whose name is no permission: until they are gone.
  std::map<CgroupId, AskedMode> asked_modes_;
  std::string holds_error_;      // why the holds are not on disk
  std::size_t saves_begun_ = 0;  // on their way to the disk
  std::vector<std::pair<MonotonicTime, AfterSave>> after_save_;
  bool history_asked_ = false;   // for what a locked history has of earlier runs
  std::string history_damage_;
  bool rails_unsaved_ = false;
  MonotonicTime next_rails_try_;
  std::map<std::string, KnownRuns> learned_;  // by learning_key(), bounded
  TaughtRuns taught_;    // while the store takes no more
  MonotonicTime next_taught_try_, next_checkpoint_;
  std::string last_checkpoint_;  // a learning_key()
  WantedPriors wanted_;  // likewise
  std::deque<JournalDecision> recent_decisions_;
  std::deque<JournalOutcome> recent_outcomes_;
  std::map<std::uint64_t, Decision> submitted_;  // not yet answered by the writer
  std::vector<JournalDecision> unsaved_decisions_;
  std::vector<JournalOutcome> unsaved_outcomes_;
};

}  // namespace cgphase
