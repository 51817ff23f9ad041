// The real agent with all its parts on the simulated kernel, and its companion. Nothing runs by
// itself: the world decides when.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "agent/agent.h"
#include "control/fast_path/fast_path.h"
#include "control/lease/companion.h"
#include "control/lease/deadline_watch.h"
#include "control/lease/heartbeat_watch.h"
#include "control/lease/lease_table.h"
#include "control/writer/kernel_limit_writer.h"
#include "tests/simulator/settling_writer.h"

namespace cgphase::simulator {

inline constexpr int kSimulatedRecords = 24;  // of the lease table
inline constexpr const char* kSimulatedBoot = "simulated";

// The simulated time, and a wall clock that the world may set.
class SimulatedClock final : public Clock {
 public:
  MonotonicTime monotonic_now() const override;
  WallTime wall_now() const override;
  std::chrono::nanoseconds wall_offset = std::chrono::seconds(1'700'000'000);
};

class Daemon {
 public:
  struct Environment {
    Config config;
    std::string engine_root;
    std::string history;  // the database's path; empty: none
    Random* random = nullptr;
    std::uint64_t late_results_one_in = 0;
  };
  // Starts like the daemon: limits of an earlier daemon are restored first.
  static Result<std::unique_ptr<Daemon>> start(const Environment& with, const Clock& clock);
  // Ends it without restoring, as SIGKILL does. No lowering may be parked.
  ~Daemon();

  // Waits until the history's thread has finished all requests, and passes its results to the
  // agent. Called after every call of the agent, so that a seed repeats exactly.
  void settle_history();

  Agent& agent() { return *agent_; }
  FastPath& fast_path() { return *fast_path_; }
  SettlingWriter& settling() { return *settling_; }
  KernelLimitWriter& writer() { return *writer_; }
  LeaseTable& leases() { return *leases_; }

 private:
  Daemon() = default;
  std::unique_ptr<StoreThread> open_history(const std::string& path) const;
  bool hand_over();  // passes on the results; false if there were none

  std::mutex posted_mutex_;
  std::deque<std::function<void()>> posted_;
  std::unique_ptr<LeaseTable> leases_;
  std::unique_ptr<FastPath> fast_path_;
  std::unique_ptr<KernelLimitWriter> writer_;
  std::unique_ptr<SettlingWriter> settling_;
  std::optional<Agent> agent_;
};

// The companion without its process: the same rule, leases and restore as cgphase-restore --watch.
class SimulatedCompanion {
 public:
  SimulatedCompanion(std::string runtime_dir, const Clock& clock)
      : runtime_dir_(std::move(runtime_dir)), clock_(clock) {}
  // Checks once and returns the time until the next check.
  std::chrono::nanoseconds check();
  // Call it after the daemon's death. False while something could not be restored.
  bool after_death();

 private:
  bool open_leases();
  std::string runtime_dir_;
  const Clock& clock_;
  HeartbeatWatch heartbeat_{kDefaultSilence, kWatchInterval};
  DeadlineWatch deadlines_;
  std::unique_ptr<LeaseTable> leases_;
};

}  // namespace cgphase::simulator
