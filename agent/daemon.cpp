#include "agent/daemon.h"

#include <utility>  // before Asio 1.74, which uses std::exchange without it

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <fcntl.h>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/answers.h"
#include "agent/instance_lock.h"
#include "agent/notify.h"
#include "agent/readiness.h"
#include "agent/socket_server.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/memory_lock.h"
#include "base/text.h"
#include "collectors/ebpf/kernel_pull.h"
#include "collectors/ebpf/probe_source.h"
#include "collectors/gpu/gpu_reader.h"
#include "collectors/gpu/gpu_thread.h"
#include "control/cgroup_root.h"
#include "control/companion.h"
#include "control/guard.h"
#include "control/kernel_limit_writer.h"
#include "control/restore.h"
#include "policy/policy.h"

namespace cgphase {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::seconds kStatusInterval{10};
// Well below the silence after which the companion restores (3 s).
constexpr std::chrono::milliseconds kBeatInterval{500};
// Each word to the service manager wakes it, and WatchdogSec= is 15 s.
constexpr std::chrono::microseconds kWatchdogInterval{2'000'000};
// Two readings are never closer than this, however often somebody else writes a limit.
constexpr std::chrono::milliseconds kClosestTicks{250};

// 5 s, less what a tick may come early.
constexpr std::chrono::milliseconds kMostMemoryAge{4900};

std::string boot_id() {
  const Result<std::string> id = read_file("/proc/sys/kernel/random/boot_id", 64);
  return id ? id->substr(0, id->find('\n')) : "unknown";
}

// What cannot be read protects nobody; it is begun anew.
OomMemory load_ooms(Store& store) {
  const Result<nlohmann::json> stored = store.load_learned(kOomMemoryName);
  if (!stored && stored.error().kind == ErrorKind::not_found) return {};
  Result<OomMemory> ooms = stored ? OomMemory::from_json(*stored) : std::unexpected(stored.error());
  if (ooms) return *std::move(ooms);
  spdlog::error("what OOMs taught is forgotten: {}", ooms.error().text);
  return {};
}

// Half a step of the model, which looks at memory once a step, and never so old that people wonder.
std::chrono::nanoseconds memory_age(const PhaseEngine* engine) {
  if (engine == nullptr) return kMostMemoryAge;
  const std::chrono::duration<double> half_step(engine->model().step_seconds / 2);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::min<std::chrono::duration<double>>(half_step, kMostMemoryAge));
}

// One that says what was restored before anything else was done.
void report_restored(const LimitWriter::RestoreReport& report, const char* when) {
  if (report.restored + report.foreign > 0 || !report.failures.empty())
    spdlog::info("{}: {} limits restored, {} left as somebody else set them, {} cgroups gone", when,
                 report.restored, report.foreign, report.gone);
  for (const std::string& failure : report.failures) spdlog::error("{}: {}", when, failure);
}

}  // namespace

Result<Config> effective_config(const DaemonOptions& options) {
  ConfigSource source;
  if (options.config_path) {
    source.file = *options.config_path;
    source.must_exist = true;
  }
  Result<Config> config = load_config(source);
  if (!config) return config;
  for (const DaemonOptions::Override& one : options.overrides)
    if (Status set = override_config(*config, one.key, one.value, one.option); !set)
      return std::unexpected(set.error());
  return config;
}

namespace {

// Everything that lives as long as the daemon, in the order in which it must be made; destruction
// in the opposite order. Made on the main thread, which then runs the loop.
class Daemon {
 public:
  Daemon(const DaemonOptions& options, Config config)
      : options_(options), config_(std::move(config)), work_(io_.get_executor()) {}

  Started<void> start();
  Exit run();

 private:
  Started<void> prepare_machine();
  Started<void> prepare_writing();
  Started<void> make_agent();
  Started<void> open_sockets();
  std::unique_ptr<StoreThread> open_store(std::uint64_t& first_decision_id, OomMemory& ooms);
  Holds load_holds() const;
  std::unique_ptr<ProbeSource> make_probes() const;
  OpenCgroupPull pull_opener() const;
  std::unique_ptr<GpuSource> make_gpus() const;
  Status start_companion();
  void keep_companion();
  void schedule_tick();
  void wait_for_tick(MonotonicTime at);
  void on_tick();
  void tick();
  void on_guard();
  void tick_out_of_turn();
  void schedule_beat();
  void beat();
  void tell_watchdog();
  void on_signal();
  void watch(asio::posix::stream_descriptor& descriptor, int fd, std::function<void()> take);
  void await(asio::posix::stream_descriptor& descriptor, std::function<void()> take);
  void reload();
  std::string status_line() const;
  Exit run_once();
  void restore_and_part();
  void stop();

  DaemonOptions options_;
  Config config_;
  SystemClock clock_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::optional<InstanceLock> lock_;
  CgroupRoot root_;
  std::vector<Source> host_sources_;
  std::unique_ptr<LeaseTable> leases_;
  std::optional<Companion> companion_;
  std::string companion_error_;  // why there is none
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<KernelLimitWriter> writer_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<Answers> answers_;
  std::optional<SocketServer> sockets_;
  asio::steady_timer timer_{io_}, beat_{io_};
  asio::signal_set signals_{io_, SIGTERM, SIGINT, SIGHUP};
  asio::posix::stream_descriptor results_{io_};
  asio::posix::stream_descriptor guard_actions_{io_};
  MonotonicTime next_tick_, next_status_, next_watchdog_;
  std::string told_standing_down_;
};

Started<void> Daemon::start() {
  if (auto ready = prepare_machine(); !ready) return ready;
  if (auto ready = prepare_writing(); !ready) return ready;
  if (auto ready = make_agent(); !ready) return ready;
  return open_sockets();
}

// What this machine is, one daemon only, and the limits that an earlier one left behind.
Started<void> Daemon::prepare_machine() {
  Started<CgroupRoot> root = ready_root(config_);
  if (!root) return std::unexpected(root.error());
  root_ = std::move(*root);
  if (root_.path.empty()) spdlog::warn("no container can be seen: {}", printable(root_.reason));
  host_sources_.push_back({"limits", root_.can_enforce && root_.writable, root_.reason});
  Result<InstanceLock> lock = InstanceLock::acquire(config_.runtime_dir);
  if (!lock) return refuse(lock.error());
  lock_.emplace(std::move(*lock));
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
  report_restored(restore_leases(*leases_, root_.path), "left behind by an earlier run");
  if (Status rooted = leases_->set_cgroup_root(root_.path); !rooted) return refuse(rooted.error());
  // Before any thread: the companion is a fork of this process.
  if (const Status started = start_companion(); !started) {
    host_sources_.push_back({"companion", false, started.error().text});
    return {};
  }
  if (config_.guard.enabled) {
    Result<std::unique_ptr<Guard>> guard =
        Guard::create({.leases = leases_.get(), .clock = &clock_, .cgroup_root = root_.path,
                       .rails = config_.rails});
    if (!guard) return refuse(guard.error());
    guard_ = std::move(*guard);
  }
  Result<std::unique_ptr<KernelLimitWriter>> writer = KernelLimitWriter::create(
      {.cgroup_root = root_.path, .leases = leases_.get(), .guard = guard_.get()});
  if (!writer) return refuse(writer.error());
  writer_ = std::move(*writer);
  if (guard_)
    if (const Status started = guard_->start(); !started) return refuse(started.error());
  return {};
}

// Without a companion nothing may be written: a limit could outlive a daemon that is killed.
Status Daemon::start_companion() {
  Result<Companion> companion = Companion::start(
      {.runtime_dir = config_.runtime_dir, .cgroup_root = root_.path, .program_directories = {}});
  if (companion) {
    companion_.emplace(std::move(*companion));
    companion_error_.clear();
    return {};
  }
  companion_.reset();
  if (companion_error_ != companion.error().text)
    spdlog::error("no dead-man companion, so nothing is written: {}", companion.error().text);
  companion_error_ = companion.error().text;
  return std::unexpected(companion.error());
}

void Daemon::keep_companion() {
  if (!writer_ || (companion_ && companion_->alive())) return;
  if (companion_) spdlog::error("the dead-man companion ended; starting another");
  agent_->set_writable(start_companion().has_value());
}

// A database that cannot be had is no reason not to protect containers: it is told in `status`.
std::unique_ptr<StoreThread> Daemon::open_store(std::uint64_t& first_decision_id,
                                                OomMemory& ooms) {
  if (!config_.store.enabled) return nullptr;
  Result<Store> store = Store::open({.path = config_.state_dir + "/history.db",
                                     .boot_id = boot_id(), .cap = config_.store.cap,
                                     .retention = config_.store.retention,
                                     .min_free = config_.store.min_free});
  if (!store) {
    host_sources_.push_back({"history", false, store.error().text});
    spdlog::error("history is off: {}", store.error().text);
    return nullptr;
  }
  if (store->quarantined())
    spdlog::error("the history was damaged; it was kept as {} and a new one begun",
                  *store->quarantined());
  first_decision_id = store->last_decision_id().value_or(0) + 1;
  ooms = load_ooms(*store);
  return std::make_unique<StoreThread>(std::move(*store));
}

// What cannot be read may have said "leave it alone": then nothing is written until an
// administrator says so.
Holds Daemon::load_holds() const {
  const std::string path = config_.state_dir + "/holds.json";
  Result<Holds> holds = Holds::load(path);
  if (holds) return *std::move(holds);
  const std::string kept = path + ".damaged";
  const bool moved = ::rename(path.c_str(), kept.c_str()) == 0;
  spdlog::error("{}{}; only observing until `cgphase mode {}`", holds.error().text,
                moved ? ", kept as " + kept : "", to_string(config_.mode));
  Holds observe(path);
  observe.set_host(Mode::observe);
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
  if (!config_.bpf.enabled || !config_.bpf.sampling || options_.once || root_.path.empty())
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
  Started<std::shared_ptr<const PhaseEngine>> engine = ready_engine(config_);
  if (!engine) return std::unexpected(engine.error());
  Result<NodeSampler> sampler =
      NodeSampler::open({.cgroup_root = root_.path, .proc_root = config_.proc_root,
                         .include = config_.include,
                         .observed_memory_age = memory_age(engine->get()),
                         .open_pull = pull_opener()});
  if (!sampler) return refuse(sampler.error());
  ::mkdir(config_.state_dir.c_str(), 0750);  // where it cannot be made, what opens in it says why
  std::uint64_t first_decision_id = 1;
  OomMemory ooms;
  std::unique_ptr<StoreThread> store = open_store(first_decision_id, ooms);
  Result<Pipeline> pipeline = Pipeline::create({.policy = config_.policy, .risk = config_.risk,
                                                .rails = config_.rails,
                                                .interval = config_.interval,
                                                .manage_unlimited = config_.manage_unlimited,
                                                .first_decision_id = first_decision_id},
                                               *engine);
  if (!pipeline) return refuse(pipeline.error());
  pipeline->set_oom_memory(std::move(ooms));
  Agent::Parts parts{.sampler = std::move(*sampler), .pipeline = std::move(*pipeline),
                     .writer = writer_.get(), .kernel_writer = writer_.get(),
                     .guard = guard_.get(), .probes = make_probes(),
                     .gpu_looks = std::make_unique<GpuLookThread>(
                         [cgroups = root_.path, proc = config_.proc_root](const auto& question) {
                           return look_for_gpu(cgroups, proc, question);
                         }),
                     .gpus = make_gpus(),
                     .store = std::move(store), .engine = *engine, .holds = load_holds()};
  const Agent::Post post = [this](std::function<void()> work) { asio::post(io_, std::move(work)); };
  agent_ = std::make_unique<Agent>(config_, std::move(parts), clock_, post);
  answers_ = std::make_unique<Answers>(
      *agent_, clock_, post,
      Answers::Facts{.version = CGPHASE_VERSION, .model_path = config_.model,
                     .started = clock_.monotonic_now(), .host_sources = host_sources_,
                     .companion_alive = [this] { return companion_ && companion_->alive(); }});
  return {};
}

Started<void> Daemon::open_sockets() {
  if (options_.once) return {};
  Result<SocketServer> sockets = SocketServer::listen(
      io_, *lock_, {.group = config_.socket.group},
      [this](const Request& request, const Peer& peer, SocketServer::Respond respond) {
        if (is_admin(request.verb))
          spdlog::info("uid {} asked: {} {}", peer.uid, to_string(request.verb),
                       request.args.dump());
        answers_->answer(request, peer, std::move(respond));
      });
  if (!sockets) return refuse(sockets.error());
  sockets_.emplace(std::move(*sockets));
  return {};
}

std::string Daemon::status_line() const {
  const StatusReport status = answers_->status();
  const int containers = status.containers_observe + status.containers_advise +
                         status.containers_enforce;
  return std::string(to_string(status.mode)) + ", " + std::to_string(containers) +
         " containers, " + std::to_string(status.containers_enforce) + " managed, " +
         human_bytes(static_cast<double>(status.saved_now.memory_bytes)) + " given back";
}

void Daemon::tick() {
  agent_->tick();
  const std::string& reason = agent_->standing_down();
  if (reason == std::exchange(told_standing_down_, reason)) return;
  if (reason.empty())
    spdlog::info("nobody else manages limits here any more: mode {} again",
                 to_string(agent_->config().mode));
  else
    spdlog::warn("only observing, every limit is the original: {}", printable(reason));
}

// With the beat that is due at about this time: waking up costs as much.
void Daemon::on_tick() {
  beat();
  tick();
  const MonotonicTime now = clock_.monotonic_now();
  if (now >= next_status_) {
    notify::status(status_line());
    next_status_ = now + kStatusInterval;
  }
  if (now < next_tick_) wait_for_tick(next_tick_);
  else schedule_tick();
  if (agent_->take_look_request()) tick_out_of_turn();
}

// In the loop that ticks, so that a loop that hangs is noticed by companion and watchdog.
void Daemon::beat() {
  agent_->beat();
  keep_companion();
  tell_watchdog();
  schedule_beat();
}

void Daemon::schedule_beat() {
  beat_.expires_after(kBeatInterval);
  beat_.async_wait([this](const boost::system::error_code& error) {
    if (!error) beat();
  });
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
  timer_.expires_at(std::chrono::time_point_cast<asio::steady_timer::duration>(at));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) on_tick();
  });
}

void Daemon::on_signal() {
  signals_.async_wait([this](const boost::system::error_code& error, int number) {
    if (error) return;
    if (number != SIGHUP) return stop();
    reload();
    on_signal();
  });
}

void Daemon::reload() {
  notify::reloading();
  Result<Config> config = effective_config(options_);
  if (config) {
    for (const std::string& kept : agent_->reload(std::move(*config)))
      spdlog::warn("reload: {}", kept);
    spdlog::info("configuration reloaded");
  } else {
    spdlog::error("reload: the old configuration stays in force: {}", config.error().text);
  }
  notify::ready(status_line());
}

void Daemon::watch(asio::posix::stream_descriptor& descriptor, int fd,
                   std::function<void()> take) {
  if (fd < 0) return;
  descriptor.assign(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  await(descriptor, std::move(take));
}

void Daemon::await(asio::posix::stream_descriptor& descriptor, std::function<void()> take) {
  descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                        [this, &descriptor, take](const boost::system::error_code& error) {
    if (error) return;
    take();
    await(descriptor, take);
  });
}

void Daemon::on_guard() {
  agent_->take_guard_actions();
  if (agent_->take_look_request()) tick_out_of_turn();
}

// Those in turn stay where they are.
void Daemon::tick_out_of_turn() {
  const MonotonicTime soon = agent_->last_tick() + kClosestTicks;
  if (soon + kClosestTicks < next_tick_) wait_for_tick(soon);
}

Exit Daemon::run_once() {
  agent_->beat();
  tick();
  std::puts(to_json(answers_->status()).dump(2).c_str());
  restore_and_part();
  return Exit::ok;
}

// The companion is sent away only when nothing is left for it to do: else it sees this process end
// and tries again.
void Daemon::restore_and_part() {
  const LimitWriter::RestoreReport restored = agent_->stop();
  report_restored(restored, "stop");
  if (companion_ && restored.failures.empty()) companion_->stop();
  if (const Status stored = agent_->store_all(); !stored)
    spdlog::error("history: {}", stored.error().text);
}

void Daemon::stop() {
  notify::stopping();
  spdlog::info("stopping: restoring every limit");
  timer_.cancel();
  beat_.cancel();
  sockets_.reset();
  restore_and_part();
  work_.reset();
  io_.stop();
}

Exit Daemon::run() {
  if (options_.once) return run_once();
  on_signal();
  watch(results_, agent_->result_fd(), [this] { agent_->take_results(); });
  watch(guard_actions_, agent_->guard_fd(), [this] { on_guard(); });
  next_tick_ = clock_.monotonic_now();
  agent_->beat();
  tick();
  schedule_beat();
  give_back_heap();
  notify::ready(status_line());
  spdlog::info("cgphased {} started: {}", CGPHASE_VERSION, status_line());
  schedule_tick();
  io_.run();
  return Exit::ok;
}

}  // namespace

Exit run_daemon(const DaemonOptions& options) {
  keep_heap_small();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "cgphased", std::make_shared<spdlog::sinks::stderr_sink_mt>()));
  spdlog::set_pattern("cgphased: %l: %v");
  set_probe_log([](const std::string& line) { spdlog::debug("libbpf: {}", line); });
  Result<Config> config = effective_config(options);
  if (!config) {
    spdlog::error("{}", config.error().text);
    return Exit::invalid;
  }
  Daemon daemon(options, std::move(*config));
  if (const Started<void> started = daemon.start(); !started) {
    spdlog::error("{}", started.error().text);
    return started.error().exit;
  }
  return daemon.run();
}

}  // namespace cgphase
