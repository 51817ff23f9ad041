// The agent runs the control loop: it collects what happened, lets the core decide
// (core/core.h), and applies the decisions. It owns the state that answers are made from. It
// knows no sockets, signals or event loops; agent/daemon.h does.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/change_journal.h"
#include "agent/chosen_model.h"
#include "agent/config/config.h"
#include "agent/history_feed.h"
#include "agent/learning.h"
#include "agent/logging/change_log.h"
#include "agent/observers/burst_watch.h"
#include "agent/observers/gpu_usage.h"
#include "agent/observers/gpu_watch.h"
#include "agent/observers/neighbourhood.h"
#include "agent/observers/outside_use.h"
#include "agent/observers/program_watch.h"
#include "agent/overrides.h"
#include "base/clock.h"
#include "base/result.h"
#include "collectors/ebpf/probe_source.h"
#include "collectors/node_sampler.h"
#include "control/fast_path/fast_path.h"
#include "control/writer/kernel_limit_writer.h"
#include "core/core.h"
#include "storage/store_thread.h"

namespace cgphase {

// Owned and used by the agent's thread alone.
class Agent {
 public:
  struct Parts {
    NodeSampler sampler;
    Core core;
    LimitWriter* writer = nullptr;               // null if nothing may be written
    KernelLimitWriter* kernel_writer = nullptr;  // the same object if it is the real one
    FastPath* fast_path = nullptr;                      // may be null
    std::unique_ptr<ProbeSource> probes;         // null: no BPF
    std::unique_ptr<GpuScanner> gpu_scanner;     // never null
    std::unique_ptr<GpuSource> gpus;             // may be null: GPUs are not read
    std::unique_ptr<StoreThread> store;          // may be null: history is off
    bool history_locked = false;                 // the store was not open yet when it was made
    std::optional<WallTime> last_written = {};   // a limit, by an earlier run
    ChosenModel model;                           // the core's
    OverrideTable overrides;                     // that administrators set before
    ChangeLog* log = nullptr;                    // may be null: nothing is logged
  };
  // Runs a function on the agent's thread, from any thread; how the store's answers come back.
  using Post = std::function<void(std::function<void()>)>;

  Agent(Config config, Parts parts, const Clock& clock, Post post);
  ~Agent();

  // One turn of the loop: collect, Core::step(), apply; then learning and history.
  void tick();
  // Checks the kill switch and beats, which shows that the loop runs. Call it from the loop of the
  // ticks at least twice a second, however long the interval between ticks is.
  void beat();
  // A turn without a sample. Call it when result_fd() or fast_path_fd() is readable; -1: there is
  // none.
  void drain_events();
  int result_fd() const;
  int fast_path_fd() const;
  // True once after another process wrote a limit of ours. The next tick judges that write, so it
  // should run soon.
  bool take_tick_request() { return std::exchange(tick_requested_, false); }

  // Uses a new configuration. Modes change at once. Safety rules apply to containers that appear
  // from now on, numbers of the fast path to those that it begins to watch. The next tick searches
  // for other managers. Returns one sentence for each key that cannot change while running.
  std::vector<std::string> reload(Config config);
  // Uses another model from the next tick on (Core::set_engine); limits stay. Learned state is kept
  // for its own model, and that of the new model is loaded. False if the model is the same.
  bool take_model(ChosenModel model);
  // Puts every original back and stores what was learned. The agent only observes afterwards.
  LimitWriter::RestoreReport restore_all();
  LimitWriter::RestoreReport restore(CgroupId id, Reason reason = Reason::restored);
  LimitWriter::RestoreReport stop();
  // After stop(): stores what was learned and ends the history.
  Status store_all();

  // Actions of an administrator. Containers that leave enforce are restored; the report has the
  // result. A mode lasts until it is changed (agent/overrides.h), or until this process ends.
  // Absent: as configured. The mode of the host applies to containers without a mode of their own,
  // but observe is the ceiling for every container. Modes of containers stay when it changes.
  LimitWriter::RestoreReport set_mode(std::optional<Mode> mode, bool until_restart = false);
  // The mode ends with the container unless it is Overrides::kept_by_name().
  LimitWriter::RestoreReport set_mode(CgroupId id, std::optional<Mode> mode,
                                      bool until_restart = false);
  // As Overrides::forget_modes().
  std::size_t forget_modes(const std::string& name) { return overrides_.forget_modes(name); }
  // Lasts until it is taken back.
  LimitWriter::RestoreReport set_paused(CgroupId id, bool paused);
  // False while there is no dead-man companion: everything is restored and only observed.
  void set_writable(bool writable);

  // The state that answers are made from.
  const Config& config() const { return config_; }
  const Core& core() const { return parts_.core; }
  const Core::Totals& totals() const { return parts_.core.totals(); }
  std::uint64_t impossible_samples() const { return parts_.sampler.impossible_samples(); }
  std::vector<Source> sources() const;
  std::uint64_t store_size_bytes() const;
  // When a limit was last written by an earlier run, as far as the history knows.
  std::optional<WallTime> last_written() const { return learning_.history().last_written; }
  StoreThread* store() { return parts_.store.get(); }
  const PhaseEngine* engine() const { return parts_.model.engine.get(); }
  const ChosenModel& model() const { return parts_.model; }
  bool kill_switch() const { return kill_switch_; }
  bool may_write() const { return parts_.writer != nullptr && writable_; }
  // Why nothing is written for now on a host that could be written to; empty: it is.
  const char* unwritable() const;
  // Of the host, as the configuration has it.
  Mode configured_mode() const { return configured_mode_; }
  const Overrides& overrides() const { return overrides_; }
  // Containers whose own mode is above Overrides::ceiling().
  std::vector<const ContainerView*> capped() const;
  // Its CPU quota is never lowered, because it has a GPU or may have one.
  bool keeps_cpu_quota(CgroupId id) const {
    return gpus_.may_have_gpu(id) && !config_.safety.lower_gpu_quota;
  }
  void after_save(Overrides::AfterSave then) { overrides_.after_save(std::move(then)); }
  // For as long as it or the daemon runs.
  void set_pin(CgroupId id, const Pin& pin) { parts_.core.set_pin(id, pin); }
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
  Learning& learning() { return learning_; }
  // Its waits for a processor; absent if they are not counted.
  std::optional<RunQueueHistogram> run_queue_histogram(CgroupId id) const {
    return parts_.probes ? parts_.probes->run_queue_histogram(id) : std::nullopt;
  }
  // Idle and burst of its network and GPUs, as BurstWatch::report() has them.
  nlohmann::json bursts(const ContainerView& view) const;
  std::vector<std::string> degraded() const;
  const ChangeJournal& journal() const { return journal_; }

 private:
  Mode mode_of(const ContainerInfo& info) const;
  ExternalFacts facts_of(const ContainerInfo& info) const;
  LimitWriter::RestoreReport apply_modes();
  void follow_host_mode();
  TickInput collect();
  TickInput collect_events();
  void collect_facts(TickInput& input) const;
  void step(const TickInput& input);
  void apply(const TickOutput& output);
  void watch_kill_switch();
  void watch_kill_switch_in_tick();
  // True if the facts about containers may have changed.
  bool watch_neighbours();
  void adopt_after_revocation();
  void container_added(const ContainerInfo& info);
  Limits restore_found(CgroupId id);
  void container_removed(CgroupId id);
  void submit(const Decision& decision);
  ProgramWatch::Environment around_programs() const;
  void watch_programs();

  Config config_;         // its mode is the one in force
  Mode configured_mode_;  // what the configuration says
  const Clock& clock_;
  Post post_;
  Parts parts_;  // after what its threads use
  NodeSample tick_;
  ChangeJournal journal_;
  Overrides overrides_;
  HistoryFeed history_;
  OutsideUse outside_;
  Neighbourhood neighbourhood_;
  GpuWatch gpus_;
  GpuUsage gpu_usage_;
  BurstWatch bursts_;
  Learning learning_;  // after what it refers to
  ProgramWatch programs_;
  bool listening_ = false;  // the fast path, to programs that start
  bool kill_switch_ = false;
  std::optional<MonotonicTime> kill_switch_time_;  // of the last check
  bool writable_ = true;
  std::uint64_t outside_writes_ = 0;  // counted by the fast path so far
  bool tick_requested_ = false;
  std::vector<FinishedWrite> refused_;  // decisions that could not be submitted
};

}  // namespace cgphase
