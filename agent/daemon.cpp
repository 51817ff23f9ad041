#include "agent/daemon.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "agent/agent.h"
#include "agent/answers.h"
#include "agent/http/publisher.h"
#include "agent/logging/change_log.h"
#include "agent/logging/event_log.h"
#include "agent/logging/host_log.h"
#include "agent/readiness.h"
#include "agent/server/event_loop.h"
#include "agent/server/instance_lock.h"
#include "agent/server/notify.h"
#include "agent/server/socket_server.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/memory_lock.h"
#include "base/text.h"
#include "cgroupfs/cgroup_root.h"
#include "collectors/ebpf/kernel_pull.h"
#include "collectors/ebpf/probe_source.h"
#include "collectors/gpu/gpu_reader.h"
#include "collectors/gpu/gpu_thread.h"
#include "control/fast_path/fast_path.h"
#include "control/lease/companion.h"
#include "control/lease/restore.h"
#include "control/writer/kernel_limit_writer.h"
#include "policy/policy.h"

namespace cgphase {
namespace {

constexpr std::chrono::seconds kStatusInterval{10};
// So long a companion has to live after one that ended before that.
constexpr std::chrono::seconds kCompanionProof{3};

// Well below the silence after which the companion restores (3 s).
constexpr std::chrono::milliseconds kBeatInterval{500};
// Each word to the service manager wakes it, and WatchdogSec= is 15 s.
constexpr std::chrono::microseconds kWatchdogInterval{2'000'000};
// Two readings are never closer than this, however often somebody else writes a limit.
constexpr std::chrono::milliseconds kClosestTicks{250};
// Who writes a limit often writes several, one after the other: they are judged together.
constexpr std::chrono::milliseconds kWritesTogether{200};

// Who asks over HTTP, whoever that is: only reading verbs come from there.
const Peer kNobody{.uid = 65534, .gid = 65534};

std::string boot_id() {
  const Result<std::string> id = read_file("/proc/sys/kernel/random/boot_id", 64);
  return id ? id->substr(0, id->find('\n')) : "unknown";
}

// Everything that lives as long as the daemon, in the order in which it must be made; destruction
// in the opposite order. Made on the main thread, which then runs the loop.
class Daemon {
 public:
  Daemon(const DaemonOptions& options, Config config, const HostLog::Tell& tell, HostLog& log)
      : options_(options), config_(std::move(config)), log_(log), changes_(tell) {}

  Started<void> start();
  Exit run();

 private:
  Started<void> prepare_machine();
  Started<void> prepare_writing();
  Result<std::string> take_model();
  Started<void> make_agent();
  Started<void> open_sockets();
  // Filled where the history can be read at once.
  struct Opened {
    std::unique_ptr<StoreThread> store;
    bool locked = false;
    std::uint64_t first_decision_id = 1;
    EarlierRuns earlier = {};
  };
  Opened open_store();
  OverrideTable load_overrides() const;
  std::unique_ptr<ProbeSource> make_probes() const;
  OpenCgroupPull pull_opener() const;
  std::unique_ptr<GpuSource> make_gpus() const;
  Status start_companion();
  void keep_companion();
  void schedule_tick();
  void wait_for_tick(MonotonicTime at);
  void on_tick();
  void tick();
  void on_event();
  void tick_out_of_turn();
  void schedule_beat();
  void beat();
  void tell_watchdog();
  void reload();
  std::string status_line(const StatusReport& status) const;
  Exit run_once();
  LimitWriter::RestoreReport restore_and_part();
  void stop();

  DaemonOptions options_;
  Config config_;
  HostLog& log_;
  ChangeLog changes_;
  SystemClock clock_;
  EventLoop loop_;
  std::optional<InstanceLock> lock_;
  CgroupRoot root_;
  std::vector<Source> host_sources_;
  std::unique_ptr<LeaseTable> leases_;
  std::optional<Companion> companion_;
  std::string companion_error_;  // why there is none
  MonotonicTime companion_started_;
  bool companion_doubted_ = false;
  std::unique_ptr<FastPath> fast_path_;
  std::unique_ptr<KernelLimitWriter> writer_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<Answers> answers_;
  std::optional<SocketServer> sockets_;
  std::optional<Publisher> publisher_;
  EventLoop::Timer timer_{loop_}, beat_{loop_};
  MonotonicTime next_tick_, next_status_, next_watchdog_;
  MonotonicTime out_of_turn_{};  // the last tick between two
};

Started<void> Daemon::start() {
  if (auto ready = prepare_machine(); !ready) return ready;
  if (auto ready = prepare_writing(); !ready) return ready;
  if (auto ready = make_agent(); !ready) return ready;
  return open_sockets();
}

// What this machine is, one daemon only, and the limits that an earlier one left behind.
Started<void> Daemon::prepare_machine() {
  if (const auto ready = ready_runtime_dir(config_); !ready) return ready;
  Started<CgroupRoot> root = ready_root(config_);
  if (!root) return std::unexpected(root.error());
  root_ = std::move(*root);
  if (root_.path.empty()) log_line(Priority::warning, "no container can be seen: " + root_.reason);
  host_sources_.push_back({"limits", root_.can_enforce && root_.writable, root_.reason});
  Result<InstanceLock> lock = InstanceLock::acquire(config_.runtime_dir);
  if (!lock) return refuse(lock.error());
  lock_.emplace(std::move(*lock));
  if (!options_.once) {
    publisher_.emplace(loop_, config_, clock_);
    for (Source& source : publisher_->sources()) host_sources_.push_back(std::move(source));
  }
  // Before any thread, whose stacks are then among it.
  const Status kept = lock_memory();
  host_sources_.push_back({"locked memory", kept.has_value(), kept ? "" : kept.error().text});
  return {};
}

Started<void> Daemon::prepare_writing() {
  if (!root_.can_enforce || !root_.writable) return {};
  Result<std::unique_ptr<LeaseTable>> leases =
      LeaseTable::open({.runtime_dir = config_.runtime_dir});
  if (!leases) return refuse(leases.error());
  leases_ = std::move(*leases);
  const LimitWriter::RestoreReport left = restore_leases(*leases_, root_.path);
  log_.left_behind(left);
  changes_.restore_failed(left.failures);
  if (Status rooted = leases_->set_cgroup_root(root_.path); !rooted) return refuse(rooted.error());
  // Before any thread: the companion is a fork of this process.
  if (const Status started = start_companion(); !started) {
    host_sources_.push_back({"companion", false, started.error().text});
    return {};
  }
  Result<std::unique_ptr<FastPath>> fast_path =
      FastPath::create({.leases = leases_.get(), .clock = &clock_, .cgroup_root = root_.path,
                     .safety = config_.safety});
  if (!fast_path) return refuse(fast_path.error());
  fast_path_ = std::move(*fast_path);
  Result<std::unique_ptr<KernelLimitWriter>> writer = KernelLimitWriter::create(
      {.cgroup_root = root_.path, .leases = leases_.get(), .fast_path = fast_path_.get()});
  if (!writer) return refuse(writer.error());
  writer_ = std::move(*writer);
  if (const Status started = fast_path_->start(); !started) return refuse(started.error());
  return {};
}

// Without a companion nothing may be written: a limit could outlive a daemon that is killed.
Status Daemon::start_companion() {
  Result<Companion> companion = Companion::start(
      {.runtime_dir = config_.runtime_dir, .cgroup_root = root_.path});
  companion_started_ = clock_.monotonic_now();
  if (companion) {
    companion_.emplace(std::move(*companion));
    companion_error_.clear();
    return {};
  }
  companion_.reset();
  if (companion_error_ != companion.error().text)
    log_.companion_lost(companion.error().text);
  companion_error_ = companion.error().text;
  return std::unexpected(companion.error());
}

// One that ended as soon as it had begun may never have watched; the next one has to live as long
// before anything is lowered, and nobody is started in each beat.
void Daemon::keep_companion() {
  if (!writer_) return;
  const bool young = clock_.monotonic_now() - companion_started_ < kCompanionProof;
  if (companion_ && companion_->alive()) {
    if (young || !std::exchange(companion_doubted_, false)) return;
    return agent_->set_writable(true);
  }
  if (companion_doubted_ && young) return agent_->set_writable(false);
  if (companion_) {
    log_line(Priority::error, "the dead-man companion ended; starting another");
    companion_doubted_ = companion_doubted_ || young;  // until one has proved itself
  }
  const bool started = start_companion().has_value();
  agent_->set_writable(started && !companion_doubted_);
}

// The model that is to be in use now. Where it cannot be had the one before goes on.
Result<std::string> Daemon::take_model() {
  Result<ChosenModel> model = choose_model(agent_->config());
  if (!model) return std::unexpected(model.error());
  for (const std::string& why : model->passed_over) log_.damaged(printable(why));
  const std::string path = escape_name(model->path), origin = model->origin;
  const bool other = agent_->take_model(*std::move(model));
  if (other) log_.model_taken(path, origin);
  return "the model in use is " + path + (other ? "" : ", as before");
}

// A database that cannot be had is no reason not to protect containers: it is told in `status`. One
// that another process has locked is opened once that lets go of it.
Daemon::Opened Daemon::open_store() {
  if (!config_.store.enabled) return {};
  const WallTime now = clock_.wall_now();
  Result<Store> store = Store::open({.path = config_.state_dir + "/history.db",
                                     .boot_id = boot_id(), .cap = config_.store.cap,
                                     .min_free = config_.store.min_free,
                                     .wait_for_lock_since = now});
  if (!store) {
    host_sources_.push_back({"history", false, store.error().text});
    log_.history_off(store.error().text);
    return {};
  }
  Opened opened;
  opened.locked = store->detached();
  if (opened.locked) {
    // Above every id that the journal can have.
    opened.first_decision_id = static_cast<std::uint64_t>(
        std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch()).count());
    log_.history_off("another process has locked it; it is tried again until it is free");
  } else {
    if (store->quarantined())
      log_.damaged("the history was damaged or of an older schema; it was kept as " +
                   *store->quarantined() + " and a new one begun");
    if (store->carry_failure()) log_.damaged(*store->carry_failure());
    // Earlier runs ended, and their limits were restored. On a full disk the next start writes it.
    static_cast<void>(store->end_open_decisions(now));
    opened.first_decision_id = store->last_decision_id().value_or(0) + 1;
    opened.earlier = load_earlier_runs(*store).value_or(EarlierRuns{});
    if (!opened.earlier.damage.empty()) log_.damaged(opened.earlier.damage);
  }
  opened.store = std::make_unique<StoreThread>(std::move(*store));
  return opened;
}

// A damaged file may have contained a pause, so nothing is written until an administrator sets the
// mode of the host.
OverrideTable Daemon::load_overrides() const {
  const std::string path = config_.state_dir + "/holds.json";
  Result<OverrideTable> table = OverrideTable::load(path);
  if (table) return *std::move(table);
  const std::string kept = path + ".damaged";
  const bool moved = ::rename(path.c_str(), kept.c_str()) == 0;
  log_.damaged(table.error().text + (moved ? ", kept as " + kept : "") +
               "; only observing until `cgphase mode default`");
  OverrideTable observe(path);
  observe.lose();
  (void)observe.save();
  return observe;
}

std::unique_ptr<ProbeSource> Daemon::make_probes() const {
  if (!config_.bpf.enabled) return no_probes("bpf.enabled is false");
  // One tick changes no limit that somebody could change back.
  if (options_.once) return no_probes("not asked for a single reading");
  return open_kernel_probes(root_.path, config_.bpf.budget);
}

// For one reading nothing is learned, and loading costs more than it saves.
OpenCgroupPull Daemon::pull_opener() const {
  if (!config_.bpf.enabled || options_.once || root_.path.empty())
    return nullptr;
  return [root = root_.path](std::size_t room) { return start_kernel_pull(root, room); };
}

std::unique_ptr<GpuSource> Daemon::make_gpus() const {
  if (!config_.gpu.enabled) return no_gpu_source("gpu.enabled is false");
  // A driver may take its time to say the first word.
  if (options_.once) return no_gpu_source("not asked for a single reading");
  const auto reader = std::make_shared<GpuReader>(
      GpuReader::Options{.nvml = config_.gpu.nvml, .proc_root = config_.proc_root,
                         .cgroup_root = root_.path});
  return std::make_unique<GpuThread>(
      [reader](MonotonicTime now, const std::vector<CgroupPath>& containers) {
        return reader->read(now, containers);
      },
      std::make_shared<SystemClock>(), GpuThread::Periods{});
}

Started<void> Daemon::make_agent() {
  Started<ChosenModel> model = ready_model(config_);
  if (!model) return std::unexpected(model.error());
  for (const std::string& why : model->passed_over) log_.damaged(printable(why));
  Result<NodeSampler> sampler =
      NodeSampler::open({.cgroup_root = root_.path, .proc_root = config_.proc_root,
                         .include = config_.include,
                         .observed_memory_age = observed_memory_age(model->engine.get()),
                         .open_pull = pull_opener()});
  if (!sampler) return refuse(sampler.error());
  ::mkdir(config_.state_dir.c_str(), 0750);  // where it cannot be made, what opens in it says why
  Opened history = open_store();
  Result<Core> core = Core::create({.policy = config_.policy, .risk = config_.risk,
                                                .safety = config_.safety,
                                                .interval = config_.interval,
                                                .manage_unlimited = config_.manage_unlimited,
                                                .budget = config_.budget,
                                                .cpu_lever = config_.enforce.cpu,
                                                .first_decision_id = history.first_decision_id},
                                               model->engine);
  if (!core) return refuse(core.error());
  core->set_safety_memory(std::move(history.earlier.safety));
  Agent::Parts parts{.sampler = std::move(*sampler), .core = std::move(*core),
                     .writer = writer_.get(), .kernel_writer = writer_.get(),
                     .fast_path = fast_path_.get(), .probes = make_probes(),
                     .gpu_scanner = std::make_unique<GpuScanThread>(
                         [cgroups = root_.path, proc = config_.proc_root](const auto& question) {
                           return scan_for_gpu(cgroups, proc, question);
                         }),
                     .gpus = make_gpus(),
                     .store = std::move(history.store), .history_locked = history.locked,
                     .last_written = history.earlier.last_written, .model = *std::move(model),
                     .overrides = load_overrides(), .log = &changes_};
  const Agent::Post post = [this](std::function<void()> work) { loop_.post(std::move(work)); };
  agent_ = std::make_unique<Agent>(config_, std::move(parts), clock_, post);
  answers_ = std::make_unique<Answers>(
      *agent_, clock_, post,
      Answers::Facts{.version = CGPHASE_VERSION, .started = clock_.monotonic_now(),
                     .host_sources = host_sources_, .take_model = [this] { return take_model(); },
                     .companion_needed = root_.can_enforce && root_.writable,
                     .companion_alive = [this] { return companion_ && companion_->alive(); },
                     .complaint = [this] { return publisher_ ? publisher_->complaint()
                                                             : std::nullopt; }});
  return {};
}

Started<void> Daemon::open_sockets() {
  if (options_.once) return {};
  Result<SocketServer> sockets = SocketServer::listen(
      loop_.context(), *lock_, {.group = config_.socket.group},
      [this](const Request& request, const Peer& peer, SocketServer::Respond respond) {
        if (const Verb verb = verb_of(request); is_admin(verb))
          log_.asked(to_string(verb) + (" " + encode_arguments(request)), peer.uid);
        answers_->answer(request, peer, std::move(respond));
      });
  if (!sockets) return refuse(sockets.error());
  sockets_.emplace(std::move(*sockets));
  publisher_->start([this](const Request& request, SocketServer::Respond respond) {
    answers_->answer(request, kNobody, std::move(respond));
  });
  return {};
}

std::string Daemon::status_line(const StatusReport& status) const {
  const int containers = status.containers_observe + status.containers_advise +
                         status.containers_enforce;
  return std::string(to_string(status.mode)) + ", " + std::to_string(containers) +
         " containers, " + std::to_string(status.containers_enforce) + " managed, " +
         human_bytes(static_cast<double>(status.saved_now.memory_bytes)) + " given back";
}

void Daemon::tick() {
  agent_->tick();
  log_.standing_down(agent_->standing_down(), agent_->config().mode);
}

// With the beat that is due at about this time: waking up costs as much.
void Daemon::on_tick() {
  beat();
  tick();
  answers_->measure_overhead();
  const MonotonicTime now = clock_.monotonic_now();
  if (now >= next_status_) {
    const StatusReport status = answers_->status();
    notify::status(status_line(status));
    log_.sources(status, now);
    next_status_ = now + kStatusInterval;
  }
  if (now < next_tick_) wait_for_tick(next_tick_);
  else schedule_tick();
  if (agent_->take_tick_request()) tick_out_of_turn();
}

// In the loop that ticks, so that a loop that hangs is noticed by companion and watchdog.
void Daemon::beat() {
  agent_->beat();
  keep_companion();
  tell_watchdog();
  schedule_beat();
}

void Daemon::schedule_beat() {
  beat_.after(kBeatInterval, [this] { beat(); });
}

void Daemon::tell_watchdog() {
  const MonotonicTime now = clock_.monotonic_now();
  if (now < next_watchdog_) return;
  notify::watchdog();
  const auto asked = notify::watchdog_interval().value_or(kWatchdogInterval);
  next_watchdog_ = now + std::min(asked / 2, kWatchdogInterval);
}

// Absolute times, so that ticks do not drift; ticks missed in a long one are not made up for.
void Daemon::schedule_tick() {
  const MonotonicTime now = clock_.monotonic_now();
  next_tick_ += config_.interval;
  if (next_tick_ <= now) next_tick_ = now + config_.interval;
  wait_for_tick(next_tick_);
}

void Daemon::wait_for_tick(MonotonicTime at) {
  timer_.at(at, [this] { on_tick(); });
}

void Daemon::reload() {
  notify::reloading();
  Result<Config> config = effective_config(options_);
  if (config) {
    std::vector<std::string> kept = agent_->reload(std::move(*config));
    if (const auto model = take_model(); !model)
      kept.push_back("the model before stays in use: " + model.error().text);
    log_.reloaded(kept, agent_->config().mode);
    log_.keys_ignored(agent_->config().warnings);
  } else {
    log_.reload_refused(config.error().text);
  }
  notify::ready(status_line(answers_->status()));
}

void Daemon::on_event() {
  agent_->drain_events();
  if (agent_->take_tick_request()) tick_out_of_turn();
}

// Those in turn stay where they are.
void Daemon::tick_out_of_turn() {
  const MonotonicTime now = clock_.monotonic_now();
  if (out_of_turn_ > now) return;  // not later, however much more is written
  const MonotonicTime soon = std::max(agent_->last_tick() + kClosestTicks, now + kWritesTogether);
  if (soon + kClosestTicks >= next_tick_) return;
  out_of_turn_ = soon;
  wait_for_tick(soon);
}

Exit Daemon::run_once() {
  agent_->beat();
  tick();
  const std::string status = to_json(answers_->status()).dump(2) + "\n";
  (void)restore_and_part();  // what failed was told; before a reader that stalls or went away
  if (std::fwrite(status.data(), 1, status.size(), stdout) == status.size() &&
      std::fflush(stdout) == 0)
    return Exit::ok;
  log_line(Priority::error, "cannot write standard output");
  return Exit::failure;
}

// The companion is sent away only when nothing is left for it to do: else it sees this process end
// and tries again.
LimitWriter::RestoreReport Daemon::restore_and_part() {
  LimitWriter::RestoreReport restored = agent_->stop();
  if (companion_ && restored.failures.empty()) companion_->stop();
  if (leases_ && restored.failures.empty()) leases_->remove_unused();
  if (const Status stored = agent_->store_all(); !stored)
    log_line(Priority::error, "history: " + stored.error().text);
  return restored;
}

void Daemon::stop() {
  notify::stopping();
  timer_.cancel();
  beat_.cancel();
  sockets_.reset();
  const LimitWriter::RestoreReport restored = restore_and_part();
  publisher_.reset();  // after it, for this may wait for a disk
  log_.stopped(restored);
  loop_.stop();
}

Exit Daemon::run() {
  log_.keys_ignored(config_.warnings);
  if (options_.once) return run_once();
  loop_.watch_signals([this](int number) { number == SIGHUP ? reload() : stop(); });
  loop_.watch(agent_->result_fd(), [this] { on_event(); });
  loop_.watch(agent_->fast_path_fd(), [this] { on_event(); });
  next_tick_ = clock_.monotonic_now();
  agent_->beat();
  tick();
  schedule_beat();
  give_back_heap();
  const StatusReport status = answers_->status();
  notify::ready(status_line(status));
  log_.started(status_line(status), status.mode);
  schedule_tick();
  loop_.run();
  return Exit::ok;
}

Exit refused(HostLog& log, const Refusal& refusal) {
  log.refused(refusal.text, static_cast<int>(refusal.exit));
  return refusal.exit;
}

}  // namespace

Exit run_daemon(const DaemonOptions& options) {
  keep_heap_small();
  EventLog events(SystemdJournal::behind(STDERR_FILENO, std::getenv("JOURNAL_STREAM")));
  const HostLog::Tell tell = [&events](const LogEntry& entry) { events.tell(entry); };
  HostLog log(tell);
  Result<Config> config = effective_config(options);
  if (!config) return refused(log, {Exit::invalid, config.error().text});
  Daemon daemon(options, std::move(*config), tell, log);
  if (const Started<void> started = daemon.start(); !started) return refused(log, started.error());
  return daemon.run();
}

}  // namespace cgphase
