// What the kernel tells the guard without being asked: stalls by PSI triggers, and changed files by
// inotify (kernfs reports memory.events, cgroup.events, and every write of a knob), all in one
// epoll. A container has a place, the number of its slot in the guard's table. The model plane arms
// and disarms places, which opens and closes all descriptors; the guard's thread collects, which
// allocates nothing. A signal only says where to look: one that is lost, late or double costs a
// look and no more. Those of a place's former container are discarded: each arming begins an era.
//
// Sources: Documentation/accounting/psi.rst (kernel/sched/psi.c), inotify(7), fs/kernfs/file.c.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/program_starts.h"

namespace cgphase {

// The shortest window that the kernel accepts, looked at by it ten times as often. A trigger tells
// at most once per window.
inline constexpr std::chrono::milliseconds kPressureWindow{500};
inline constexpr std::chrono::milliseconds kSomeStall{10};  // 2 % of it: look
inline constexpr std::chrono::milliseconds kFullStall{50};  // 10 % of it: a stall

// What happened at a place, as bits.
using Signals = std::uint8_t;
inline constexpr Signals kSignalMemoryPressure = 1, kSignalCpuPressure = 32;  // `some`
inline constexpr Signals kSignalPressure = kSignalMemoryPressure | kSignalCpuPressure;
inline constexpr Signals kSignalFullStall = 2;   // memory, `full`
inline constexpr Signals kSignalEvents = 4;      // memory.events or cgroup.events
inline constexpr Signals kSignalKnob = 8;        // a file with a limit was written, by anybody
inline constexpr Signals kSignalProgram = 64;    // a program started that may read the limits
inline constexpr Signals kSignalLost = 16;       // the place has lost a source: poll it

// Whether a kind of signal is to be had; if not, or not everywhere, why.
struct GuardSource {
  bool present = true;
  std::string detail;
};

class GuardSignals {
 public:
  struct Options {
    int places = 0;
    bool pressure = true;  // false: no PSI triggers, as on a kernel without
    bool inotify = true;
    std::string cgroup_root = {};  // where triggers are tried at once; empty: with the first place
    const Clock* clock = nullptr;  // outlives this; null: no start of a program is remembered
  };
  // Errors: io (no epoll or eventfd).
  static Result<std::unique_ptr<GuardSignals>> create(const Options& options);
  ~GuardSignals();
  GuardSignals(const GuardSignals&) = delete;
  GuardSignals& operator=(const GuardSignals&) = delete;

  // --- the model plane, one thread at a time ---

  // From now on tells what happens to the cgroup. False where something cannot be told, so that it
  // must be polled.
  bool arm(int place, int directory_fd);
  void disarm(int place);
  GuardSource pressure() const;
  GuardSource inotify() const;
  // From now on tells of programs that start. Once; `starts` is then the guard's thread's.
  Status listen(std::shared_ptr<ProgramStarts> starts);

  // --- the guard's thread ---

  // Waits until something happens, at most for `longest`. False once told to stop.
  bool collect(std::chrono::milliseconds longest);
  // What happened at the place since it was last taken.
  Signals take(int place);
  // kSignalProgram alone: whether it was told since it was last taken.
  bool take_program(int place);
  Signals waiting(int place) const;

  // Any thread: whether a program was told to have started in that cgroup since then, of the last
  // kStarts.
  static constexpr std::size_t kStarts = 1024;
  bool program_started(std::uint64_t cgroup, MonotonicTime since) const;

  // Any thread: collect() returns at once, after stop() with false, once. call() is for a place
  // that is lowered and must be polled, for the guard may have just begun a long rest.
  void call(int place);
  // collect() returns at once, for nothing: somebody is to be watched again after a time of nobody.
  void rouse() { wake(); }
  void stop();

 private:
  struct Place;
  explicit GuardSignals(const Options& options);
  Status add(int fd, std::uint32_t events, std::uint64_t tag);
  void try_pressure(const std::string& cgroup_root);
  bool arm_triggers(int place, int directory_fd);
  bool arm_watch(int place, int directory_fd);
  void wake();
  // Unless the place is in another era by now.
  void tell(int place, std::uint32_t era, Signals signals);
  std::uint32_t era_of(int place) const;
  int lost_triggers() const;
  void take_trigger(std::uint64_t tag, std::uint32_t events);
  void take_watches();
  void take_watch_event(int watch, std::uint32_t mask, const char* name);
  void everything_changed();
  void take_program_start(std::uint64_t container);

  const Options options_;
  Fd epoll_, wake_event_, inotify_;
  std::atomic<bool> stopping_{false};
  std::unique_ptr<Place[]> places_;
  // The watch of each place, apart from the rest because it is searched through; -1 where none.
  std::unique_ptr<std::atomic<int>[]> watches_;
  // Of each place: its era above kEraShift, below it what was told and not yet taken.
  std::unique_ptr<std::atomic<std::uint32_t>[]> told_;
  // Of each place: the inode of its cgroup, 0 where it is not armed.
  std::unique_ptr<std::atomic<std::uint64_t>[]> cgroups_;
  std::shared_ptr<ProgramStarts> starts_;  // in epoll_ only after this was set
  struct Start {
    std::atomic<std::uint64_t> cgroup{0};  // 0 while the other changes
    std::atomic<MonotonicTime> time{MonotonicTime()};
  };
  std::array<Start, kStarts> recent_;  // written by the guard's thread alone
  std::size_t next_start_ = 0;
  int last_found_ = 0;  // the guard's thread alone
  int inotify_error_ = 0;
  // Of the model plane: places armed, and why some are without a source.
  int armed_ = 0, without_triggers_ = 0, without_watch_ = 0;
  int trigger_error_ = 0, watch_error_ = 0;
};

}  // namespace cgphase
