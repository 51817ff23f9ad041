// The fast path is one thread that watches the containers whose limits are lowered or that are
// frozen. It may only raise or restore. It checks a container when the kernel signals an event
// (control/fast_path/signals.h). It also checks every 150 ms while the container is at risk
// or a signal source is missing. It checks every 500 ms in any case, because no signal reports
// growing memory and a lost event must not be fatal. It writes through descriptors that stay open.
// Between start() and stop() its thread allocates nothing, does no disk I/O and takes no lock.
//
// How it shares data with the model plane. A container has a slot of a fixed table. The slot's
// state says who owns it. The model plane owns empty, filling and left; its threads take turns
// under a mutex that the fast path never takes. The fast path's thread owns active and leaving. The
// model plane moves empty -> filling -> active, active -> leaving and left -> empty; the fast path
// moves leaving -> left. Only the model plane opens and closes files, because closing a PSI trigger
// waits for the kernel. In an active slot it writes only the numbers of the lease records, which
// are atomic. The lease (control/lease/lease_table.h) says what may be raised, and to what. The
// fast path changes a file only while the file contains one of our values, and first stores its own
// value in the lease. Its actions return through a ring with one writer and one reader.
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
#include "control/fast_path/rule.h"
#include "control/fast_path/signals.h"
#include "control/lease/lease_table.h"
#include "control/write_deadline.h"
#include "policy/decision.h"

namespace cgphase {

inline constexpr std::chrono::milliseconds kFastPathRiskInterval{150};
inline constexpr std::chrono::milliseconds kFastPathQuietInterval{500};
// While no container is watched.
inline constexpr std::chrono::milliseconds kFastPathIdleInterval{10'000};
inline constexpr int kFastPathContainers = 1024;
// Slots that one close_dropped() closes: the kernel needs about 10 ms for each.
inline constexpr int kFastPathReaped = 2;
inline constexpr std::size_t kFastPathActions =
    256;  // capacity; further actions are counted as lost

// An action of the fast path, for the journal.
struct FastPathAction {
  MonotonicTime woken;  // when the fast path's thread woke up
  MonotonicTime time;   // when the value was in force
  CgroupId id;
  Knob knob = Knob::cpu_max;
  KnobText old_value, new_value;
  Reason reason = Reason::headroom;
  bool written = false;  // false: the kernel rejected it
};

class FastPath {
 public:
  struct Options {
    LeaseTable* leases = nullptr;  // outlives the fast path
    const Clock* clock = nullptr;  // outlives the fast path
    int containers = kFastPathContainers;
    std::string cgroup_root = {};  // PSI triggers are tried here at once, for pressure()
    bool pressure = true;          // false: poll instead of PSI triggers
    bool inotify = true;           // false: poll instead of inotify
    SafetyConfig safety = {};        // the fast path uses some of their numbers
  };
  static Result<std::unique_ptr<FastPath>> create(const Options& options);
  ~FastPath();  // stops
  FastPath(const FastPath&) = delete;
  FastPath& operator=(const FastPath&) = delete;

  // The fast path's thread calls this before it raises a memory limit. It ends a lowering of the
  // same container on which the kernel still works. It must not lock or allocate. Set it before
  // start().
  void on_memory_raise(std::function<void(CgroupId)> call) { memory_raise_ = std::move(call); }

  Status start();
  void stop();  // joins the thread; start() may be called again

  // --- the model plane ---

  // Watches the container from now on and may raise `knob`, whose lease is `record`. If the open
  // files are not enough for `knob`, they are reopened. On an error, do not lower `knob`; the other
  // knobs are watched as before. Errors: invalid (the table is full), gone (a file that the rules
  // of `knob` need cannot be read), io (descriptors ran out).
  Status cover(CgroupId id, int directory_fd, Knob knob, int record);
  // Stops watching the container.
  void drop(CgroupId id);
  // Sets the numbers for containers that are covered from now on; the others keep theirs.
  void set_safety(const SafetyConfig& safety);

  // Listens for programs that start in lowered containers; their originals are restored at once.
  // Call it only once.
  Status listen(std::shared_ptr<ProgramStarts> starts);

  // Any thread: whether a program start was reported for the container since `since`.
  bool program_started(CgroupId id, MonotonicTime since) const;

  // Whether PSI triggers and inotify work for all containers; if some are polled, why.
  FastPathSource pressure() const;
  FastPathSource inotify() const;

  // Readable if actions wait, or after somebody else wrote a limit.
  int action_fd() const { return action_event_.get(); }
  std::vector<FastPathAction> take_actions();
  // Closes the files of dropped containers, a few per call. Call it once per tick and nowhere else.
  void close_dropped();
  // Waits, at most `most`, until every value that the fast path wrote has its action in the ring.
  // Otherwise a file may be newer than the actions. False if the fast path is still working.
  bool settle(std::chrono::milliseconds most) const;
  std::uint64_t lost_actions() const { return lost_.load(); }
  // Values in lowered files that cgphase did not write, each counted once.
  std::uint64_t outside_writes() const { return outside_writes_.load(); }

  // --- the fast path's thread, or a test without one ---

  // Collects the kernel's signals, checks every container that is due, and acts. Returns the time
  // until the next check.
  std::chrono::milliseconds poll_once();

 private:
  struct Slot;
  FastPath(const Options& options, std::unique_ptr<FastPathSignals> signals);
  void run();
  std::chrono::milliseconds look();
  bool due(Slot& slot);
  void watch(Slot& slot, Signals signals);
  void act(Slot& slot, const FastPathReading& reading, const FastPathVerdict& verdict);
  bool holds(const Slot& slot, Knob knob) const;
  bool holds_any(const Slot& slot) const;
  FastPathReading read(Slot& slot, bool full_stall) const;
  void thaw_in_time(Slot& slot);
  void note_outside_writes(Slot& slot);
  void note_memory_max(Slot& slot, const FastPathReading& reading);
  void tell_outside_write();
  void raise_cpu(Slot& slot, const FastPathReading& reading, CpuRaise raise);
  void restore(Slot& slot, std::span<const Knob> knobs, Reason reason);
  bool raise_to(Slot& slot, Knob knob, const KnobText& from, const KnobText& to,
                const LeaseValues& values, Reason reason);
  bool write(Slot& slot, Knob knob, const KnobText& value);
  void report(const FastPathAction& action);
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
  const std::unique_ptr<FastPathSignals> signals_;
  std::vector<Slot> slots_;
  std::atomic<std::size_t> used_ = 0;  // slots from this index on were never filled
  mutable std::mutex model_plane_;  // the callers of cover() and drop() take turns
  // Model plane only: when the fast path last raised the quota of a container that it no longer
  // watches, for as long as that matters.
  std::map<CgroupId, MonotonicTime> cpu_raises_;
  FastPathNumbers numbers_;            // model plane only; each slot has a copy
  std::function<void(CgroupId)> memory_raise_;
  std::array<FastPathAction, kFastPathActions> actions_;
  std::atomic<std::size_t> actions_written_{0}, actions_taken_{0};
  std::atomic<std::uint64_t> lost_{0}, outside_writes_{0};
  std::atomic<bool> acting_{false};    // a written value may not have its action yet
  MonotonicTime woken_;                // the fast path's thread only
  WriteDeadline* deadline_ = nullptr;  // the fast path's thread only; null in a test without one
  Fd action_event_;
  std::thread thread_;
};

}  // namespace cgphase
