// The guard plane: one thread that watches the containers whose limits are lowered and may only
// raise or restore. It looks at a container when the kernel tells that something happened to it
// (control/fast_path/guard_signals.h), every 150 ms while it is at risk or cannot be told of, and
// every 500 ms in any case: memory that grows is told by nobody, and a lost event must not be
// fatal. It writes through descriptors that are held open. Between start() and stop() its thread
// allocates nothing, touches no disk and takes no lock.
//
// How it shares with the model plane. A container has a slot of a fixed table. A slot's state says
// whose it is: empty, filling and left belong to the model plane (whose threads take turns under a
// mutex that the guard never takes), active and leaving to the guard's thread. The model plane
// moves empty -> filling -> active, active -> leaving and left -> empty, and does all opening and
// closing, for closing a PSI trigger waits for the kernel; the guard moves leaving -> left. Only
// the lease record numbers of an active slot are written by the model plane, each an atomic. What
// may be raised, and to what, stands in the lease (control/lease/lease_table.h): the guard acts on
// a file only while it holds one of our values, and stores its own value there first. Its actions
// come back through a ring with one writer and one reader.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "cgroupfs/cgroup_id.h"
#include "control/fast_path/guard_rule.h"
#include "control/fast_path/guard_signals.h"
#include "control/lease/lease_table.h"
#include "control/write_deadline.h"
#include "policy/decision.h"

namespace cgphase {

inline constexpr std::chrono::milliseconds kGuardRiskInterval{150};
inline constexpr std::chrono::milliseconds kGuardQuietInterval{500};
inline constexpr std::chrono::milliseconds kGuardIdleInterval{10'000};  // of a thread with nobody
inline constexpr int kGuardContainers = 1024;
// Slots whose descriptors one close_dropped() closes: the kernel takes some 10 ms for each.
inline constexpr int kGuardReaped = 2;
inline constexpr std::size_t kGuardActions = 256;  // not yet taken; more are counted as lost

// What the guard did, for the journal.
struct GuardAction {
  MonotonicTime woken;  // when the guard's thread began to look
  MonotonicTime time;   // when the value was in force
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
    std::string cgroup_root = {};  // where PSI triggers are tried at once, for sources()
    bool pressure = true;          // false: poll instead of PSI triggers
    bool inotify = true;           // false: poll instead of inotify
    RailsConfig rails = {};        // their numbers are the guard's too
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

  // Watches the container from now on and may raise `knob`, whose lease is `record`. Where the
  // files held so far cannot see to `knob`, they are opened anew. Errors, after which it may not be
  // lowered, and the others are watched as before: invalid (the table is full), gone (a file that
  // the rules of `knob` need cannot be read), io (descriptors ran out).
  Status cover(CgroupId id, int directory_fd, Knob knob, int record);
  // Watches it no longer.
  void drop(CgroupId id);
  // The numbers of containers that are watched from now on; the others keep theirs.
  void set_rails(const RailsConfig& rails);

  // Of programs that start in lowered containers, which get their originals back at once. Once.
  Status listen(std::shared_ptr<ProgramStarts> starts);

  // Any thread: whether one was told to have started there since then.
  bool program_started(CgroupId id, MonotonicTime since) const;

  // Whether containers are told of by PSI triggers and by inotify, or polled, and why.
  GuardSource pressure() const;
  GuardSource inotify() const;

  // Readable when actions wait, or when somebody else wrote a limit.
  int action_fd() const { return action_event_.get(); }
  std::vector<GuardAction> take_actions();
  // To be called in every tick, and nowhere else: closes the files of dropped containers, a few at
  // a time.
  void close_dropped();
  // Waits, at most so long, until each value that is in a file has its action: a file that was read
  // before may be ahead of them. False where the guard is still at it.
  bool settle(std::chrono::milliseconds most) const;
  std::uint64_t lost_actions() const { return lost_.load(); }
  // Values in files of ours that nobody of cgphase wrote, each counted once.
  std::uint64_t outside_writes() const { return outside_writes_.load(); }

  // --- the guard's thread, or a test without one ---

  // Takes what the kernel has told, looks at every container that is due and acts; returns when to
  // look again.
  std::chrono::milliseconds poll_once();

 private:
  struct Slot;
  Guard(const Options& options, std::unique_ptr<GuardSignals> signals);
  void run();
  std::chrono::milliseconds look();
  bool due(Slot& slot);
  void watch(Slot& slot, Signals signals);
  void act(Slot& slot, const GuardReading& reading, const GuardVerdict& verdict);
  bool holds(const Slot& slot, Knob knob) const;
  bool holds_any(const Slot& slot) const;
  GuardReading read(Slot& slot, bool full_stall) const;
  void note_outside_writes(Slot& slot);
  void note_memory_max(Slot& slot, const GuardReading& reading);
  void tell_outside_write();
  void raise_cpu(Slot& slot, const GuardReading& reading, CpuRaise raise);
  void restore(Slot& slot, std::span<const Knob> knobs, Reason reason);
  bool raise_to(Slot& slot, Knob knob, const KnobText& from, const KnobText& to,
                const LeaseValues& values, Reason reason);
  bool write(Slot& slot, Knob knob, const KnobText& value);
  void report(const GuardAction& action);
  bool watches_any();
  Slot* find(CgroupId id);
  Slot* find_empty();
  bool reap();
  void remember_cpu_raise(const Slot& slot);
  void recall_cpu_raise(Slot& slot);
  std::span<Slot> used();
  int place_of(const Slot& slot) const;

  LeaseTable& leases_;
  const Clock& clock_;
  const std::unique_ptr<GuardSignals> signals_;
  std::vector<Slot> slots_;
  std::atomic<std::size_t> used_ = 0;  // no slot from there on was ever filled
  mutable std::mutex model_plane_;  // the callers of cover() and drop() take turns
  // Of the model plane: when the guard last raised the quota of containers that it left since, for
  // as long as that matters.
  std::map<CgroupId, MonotonicTime> cpu_raises_;
  GuardNumbers numbers_;            // of the model plane; each slot has a copy
  std::function<void(CgroupId)> memory_raise_;
  std::array<GuardAction, kGuardActions> actions_;
  std::atomic<std::size_t> actions_written_{0}, actions_taken_{0};
  std::atomic<std::uint64_t> lost_{0}, outside_writes_{0};
  std::atomic<bool> acting_{false};    // what it writes has no action yet
  MonotonicTime woken_;                // the guard's thread alone
  WriteDeadline* deadline_ = nullptr;  // likewise; null in a test without one
  Fd action_event_;
  std::thread thread_;
};

}  // namespace cgphase
