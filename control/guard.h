// The guard plane: one thread that watches the containers whose limits are lowered and may only
// raise or restore. It looks at each every 500 ms, every 150 ms while one is at risk, and writes
// through descriptors that are held open. Between start() and stop() its thread allocates nothing,
// touches no disk and takes no lock.
//
// How it shares with the model plane. A container has a slot of a fixed table. A slot's state says
// whose it is: empty and filling belong to the model plane (whose threads take turns under a mutex
// that the guard never takes), active and leaving to the guard's thread. The model plane moves
// empty -> filling -> active and active -> leaving, the guard leaving -> empty after it has closed
// the descriptors. Only the lease record numbers of an active slot are written by the model plane,
// each an atomic. What may be raised, and to what, stands in the lease (control/lease_table.h): the
// guard acts on a file only while it holds one of our values, and stores its own value there first.
// Its actions come back through a ring with one writer and one reader.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "collectors/cgroup_id.h"
#include "control/guard_rule.h"
#include "control/lease_table.h"
#include "policy/decision.h"

namespace cgphase {

inline constexpr std::chrono::milliseconds kGuardRiskInterval{150};
inline constexpr std::chrono::milliseconds kGuardQuietInterval{500};
inline constexpr int kGuardContainers = 1024;
inline constexpr std::size_t kGuardActions = 256;  // not yet taken; more are counted as lost

// What the guard did, for the journal.
struct GuardAction {
  MonotonicTime time;
  CgroupId id;
  Knob knob = Knob::cpu_max;
  KnobText old_value, new_value;
  Reason reason = Reason::headroom;
  bool written = false;  // false: the kernel refused
};

class Guard {
 public:
  struct Options {
    LeaseTable* leases = nullptr;  // outlives the guard
    const Clock* clock = nullptr;  // outlives the guard
    int containers = kGuardContainers;
  };
  static Result<std::unique_ptr<Guard>> create(const Options& options);
  ~Guard();  // stops
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // Called by the guard's thread before it raises a memory limit, to end a lowering of the same
  // container that the kernel is still busy with. Must not lock or allocate. Set before start().
  void on_memory_raise(std::function<void(CgroupId)> call) { memory_raise_ = std::move(call); }

  Status start();
  void stop();  // the thread has ended when this returns; may be started again

  // --- the model plane ---

  // Watches the container from now on and may raise `knob`, whose lease is `record`. Errors:
  // invalid (the table is full: then nothing may be lowered), gone.
  Status cover(CgroupId id, int directory_fd, Knob knob, int record);
  // Watches it no longer.
  void drop(CgroupId id);

  // Readable when actions wait.
  int action_fd() const { return action_event_.get(); }
  std::vector<GuardAction> take_actions();
  std::uint64_t lost_actions() const { return lost_.load(); }

  // --- the guard's thread, or a test without one ---

  // Looks at every container once and acts; returns when to look again.
  std::chrono::milliseconds poll_once();

 private:
  struct Slot;
  explicit Guard(const Options& options);
  void run();
  void watch(Slot& slot, bool& at_risk);
  GuardReading read(Slot& slot) const;
  void raise_cpu(Slot& slot, const GuardReading& reading, CpuRaise raise);
  void restore_memory(Slot& slot, MemoryRisk risk);
  bool raise_to(Slot& slot, Knob knob, const KnobText& from, const KnobText& to,
                const LeaseValues& values, Reason reason);
  void report(const GuardAction& action);
  Slot* find(CgroupId id);
  Slot* find_empty();

  LeaseTable& leases_;
  const Clock& clock_;
  std::vector<Slot> slots_;
  std::mutex model_plane_;  // the callers of cover() and drop() take turns
  std::function<void(CgroupId)> memory_raise_;
  std::array<GuardAction, kGuardActions> actions_;
  std::atomic<std::size_t> actions_written_{0}, actions_taken_{0};
  std::atomic<std::uint64_t> lost_{0};
  Fd action_event_, stop_event_, timer_, epoll_;
  std::thread thread_;
};

}  // namespace cgphase
