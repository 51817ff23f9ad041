// Signals that the kernel sends to the fast path: PSI triggers report stalls, and inotify reports
// changed files. kernfs notifies for memory.events, cgroup.events and every write of a knob. All
// share one epoll. A container has a place, which is the number of its slot in the fast path's
// table. The model plane arms and disarms places and so opens and closes all descriptors. The fast
// path's thread collects and allocates nothing. A signal only says where to check: a lost, late or
// double signal costs one check at most. Each arming begins a new era, and signals from a former
// container of the place are discarded.
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

// The shortest window that the kernel accepts. The kernel checks it ten times per window, and a
// trigger fires at most once per window.
inline constexpr std::chrono::milliseconds kPressureWindow{500};
inline constexpr std::chrono::milliseconds kSomeStall{10};  // 2 % of it: check
inline constexpr std::chrono::milliseconds kFullStall{50};  // 10 % of it: a stall

// Bits for the events at a place.
using Signals = std::uint8_t;
inline constexpr Signals kSignalMemoryPressure = 1, kSignalCpuPressure = 32;  // `some`
inline constexpr Signals kSignalPressure = kSignalMemoryPressure | kSignalCpuPressure;
inline constexpr Signals kSignalFullStall = 2;   // memory, `full`
inline constexpr Signals kSignalEvents = 4;      // memory.events or cgroup.events
inline constexpr Signals kSignalKnob = 8;        // a limit file was written, by anybody
inline constexpr Signals kSignalProgram = 64;    // a program that may read the limits started
inline constexpr Signals kSignalLost = 16;       // the place has lost a source: poll it

// Whether a kind of signal works; if not everywhere, `detail` says why.
struct FastPathSource {
  bool present = true;
  std::string detail;
};

class FastPathSignals {
 public:
  struct Options {
    int places = 0;
    bool pressure = true;  // false: no PSI triggers, as on a kernel without PSI
    bool inotify = true;
    std::string cgroup_root = {};  // triggers are tried here at once; empty: at the first place
    const Clock* clock = nullptr;  // outlives this; null: program starts are not recorded
  };
  // Errors: io (no epoll or eventfd).
  static Result<std::unique_ptr<FastPathSignals>> create(const Options& options);
  ~FastPathSignals();
  FastPathSignals(const FastPathSignals&) = delete;
  FastPathSignals& operator=(const FastPathSignals&) = delete;

  // --- the model plane, one thread at a time ---

  // Reports what happens to the cgroup from now on. False if a source is missing, so that the
  // cgroup must be polled.
  bool arm(int place, int directory_fd);
  void disarm(int place);
  FastPathSource pressure() const;
  FastPathSource inotify() const;
  // Reports program starts from now on. Call it only once; then `starts` belongs to the fast path's
  // thread.
  Status listen(std::shared_ptr<ProgramStarts> starts);

  // --- the fast path's thread ---

  // Waits for an event, at most for `longest`. False after stop().
  bool collect(std::chrono::milliseconds longest);
  // Returns and clears the signals of the place.
  Signals take(int place);
  // Returns and clears kSignalProgram alone.
  bool take_program(int place);
  Signals waiting(int place) const;

  // Any thread: whether a program start was reported for the cgroup since `since`, among the last
  // kStarts.
  static constexpr std::size_t kStarts = 1024;
  bool program_started(std::uint64_t cgroup, MonotonicTime since) const;

  // Any thread: these make collect() return at once; after stop() it returns false, once. Use
  // call() for a place that is lowered and must be polled, because the fast path may have just
  // begun a long wait.
  void call(int place);
  // Makes collect() return at once without a signal: after an idle time there is a container to
  // watch again.
  void rouse() { wake(); }
  void stop();

 private:
  struct Place;
  explicit FastPathSignals(const Options& options);
  Status add(int fd, std::uint32_t events, std::uint64_t tag);
  void try_pressure(const std::string& cgroup_root);
  bool arm_triggers(int place, int directory_fd);
  bool arm_watch(int place, int directory_fd);
  void wake();
  // Adds the signals unless the place is in another era by now.
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
  // The watch of each place; -1 if it has none. It is stored apart from the rest because it is
  // searched.
  std::unique_ptr<std::atomic<int>[]> watches_;
  // For each place: the era above kEraShift, below it the signals that were not taken yet.
  std::unique_ptr<std::atomic<std::uint32_t>[]> told_;
  // For each place: the inode of its cgroup; 0 if it is not armed.
  std::unique_ptr<std::atomic<std::uint64_t>[]> cgroups_;
  std::shared_ptr<ProgramStarts> starts_;  // added to epoll_ only after this was set
  struct Start {
    std::atomic<std::uint64_t> cgroup{0};  // 0 while `time` changes
    std::atomic<MonotonicTime> time{MonotonicTime()};
  };
  std::array<Start, kStarts> recent_;  // written by the fast path's thread only
  std::size_t next_start_ = 0;
  int last_found_ = 0;  // the fast path's thread only
  int inotify_error_ = 0;
  // Model plane only: the number of armed places, and why some lack a source.
  int armed_ = 0, without_triggers_ = 0, without_watch_ = 0;
  int trigger_error_ = 0, watch_error_ = 0;
};

}  // namespace cgphase
