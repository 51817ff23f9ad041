#include "tests/simulator/daemon.h"

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "control/lease/restore.h"
#include "tests/agent/observers/inline_gpu_scanner.h"
#include "tests/core/small_model.h"
#include "tests/simulator/system_calls.h"

namespace cgphase::simulator {

MonotonicTime SimulatedClock::monotonic_now() const {
  return MonotonicTime(std::chrono::nanoseconds(time_ns()));
}

WallTime SimulatedClock::wall_now() const {
  return WallTime(wall_offset + std::chrono::nanoseconds(time_ns()));
}

Result<std::unique_ptr<Daemon>> Daemon::start(const Environment& with, const Clock& clock) {
  std::unique_ptr<Daemon> daemon(new Daemon);
  const std::string root(kSimulatedRoot);
  auto leases = LeaseTable::open({.runtime_dir = with.config.runtime_dir,
                                  .records = kSimulatedRecords,
                                  .boot_id = kSimulatedBoot});
  if (!leases) return std::unexpected(leases.error());
  daemon->leases_ = std::move(*leases);
  (void)restore_leases(*daemon->leases_, root);
  // Nothing wakes it here. The world calls poll_once() at random times, which is harder.
  auto fast_path = FastPath::create({.leases = daemon->leases_.get(),
                                     .clock = &clock,
                                     .containers = 32,
                                     .pressure = false,
                                     .inotify = false});
  if (!fast_path) return std::unexpected(fast_path.error());
  daemon->fast_path_ = std::move(*fast_path);
  auto writer = KernelLimitWriter::create({.cgroup_root = root,
                                           .leases = daemon->leases_.get(),
                                           .fast_path = daemon->fast_path_.get()});
  if (!writer) return std::unexpected(writer.error());
  daemon->writer_ = std::move(*writer);
  lanes().watch(daemon->writer_->result_fd());
  daemon->settling_ = std::make_unique<SettlingWriter>(*daemon->writer_, *with.random,
                                                       with.late_results_one_in);
  auto sampler = NodeSampler::open({.cgroup_root = root, .proc_root = with.config.proc_root,
                                    .engine_root = with.engine_root,
                                    .sweep = std::chrono::seconds(3)});
  if (!sampler) return std::unexpected(sampler.error());
  auto core = Core::create({.policy = with.config.policy, .safety = with.config.safety,
                                    .manage_unlimited = with.config.manage_unlimited,
                                    .budget = with.config.budget,
                                    .cpu_lever = with.config.enforce.cpu},
                                   small_engine());
  if (!core) return std::unexpected(core.error());
  daemon->agent_.emplace(
      with.config,
      Agent::Parts{.sampler = std::move(*sampler), .core = std::move(*core),
                   .writer = daemon->settling_.get(), .kernel_writer = daemon->writer_.get(),
                   .fast_path = daemon->fast_path_.get(),
                   .gpu_scanner = std::make_unique<InlineGpuScanner>(root, with.config.proc_root),
                   .store = daemon->open_history(with.history),
                   .model = {.engine = small_engine()}},
      clock, [raw = daemon.get()](std::function<void()> work) {
        const std::lock_guard lock(raw->posted_mutex_);
        raw->posted_.push_back(std::move(work));
      });
  return daemon;
}

// If the history cannot be opened, it starts without, like the daemon.
std::unique_ptr<StoreThread> Daemon::open_history(const std::string& path) const {
  if (path.empty()) return nullptr;
  Result<Store> store = Store::open({.path = path, .boot_id = kSimulatedBoot});
  return store ? std::make_unique<StoreThread>(std::move(*store)) : nullptr;
}

bool Daemon::hand_over() {
  std::deque<std::function<void()>> works;
  {
    const std::lock_guard lock(posted_mutex_);
    works.swap(posted_);
  }
  for (const auto& work : works) work();
  return !works.empty();
}

void Daemon::settle_history() {
  do {
    if (StoreThread* const store = agent_->store(); store != nullptr) {
      std::promise<void> reached;
      // Refused while too many requests wait; these are being processed.
      while (!store->query([&](Store&) { reached.set_value(); })) std::this_thread::yield();
      reached.get_future().wait();
    }
  } while (hand_over());
}

Daemon::~Daemon() {
  agent_.reset();
  writer_.reset();
  lanes().forget_unanswered();
}

bool SimulatedCompanion::open_leases() {
  if (leases_) return true;
  auto table = LeaseTable::open_existing({.runtime_dir = runtime_dir_, .boot_id = kSimulatedBoot});
  if (table) leases_ = std::move(*table);
  return leases_ != nullptr;
}

std::chrono::nanoseconds SimulatedCompanion::check() {
  const LaneScope as(Lane::companion);
  if (!open_leases()) return kWatchInterval;
  const bool silent = heartbeat_.silent(clock_.monotonic_now(), leases_->last_beat());
  const std::string root(kSimulatedRoot);
  if (silent) (void)restore_leases(*leases_, root);
  else (void)deadlines_.check(*leases_, root, clock_.monotonic_now());
  return deadlines_.any() ? kWatchInterval : heartbeat_.rest();
}

bool SimulatedCompanion::after_death() {
  const LaneScope as(Lane::companion);
  if (!open_leases()) return true;
  const bool owned = leases_->try_own();
  const RestoreReport report = restore_leases(*leases_, std::string(kSimulatedRoot));
  // What would not fit is judged by the law of restored limits.
  return owned && std::ranges::all_of(report.failures, [](const std::string& line) {
           return line.ends_with("what is in use would not fit and be killed");
         });
}

}  // namespace cgphase::simulator
