// The door through which the real code reaches the simulated kernel. The test program is linked
// with --wrap for the system calls that cgphase makes (CMakeLists.txt); those on paths below
// kSimulatedRoot, and on descriptors opened there, are answered by a CgroupKernel, all others go to
// the real kernel. Time (steady_clock) and the deadlines of the writer are simulated too.
//
// The writer's two threads are real. They run one at a time, and only while the thread of the test
// waits for them, so a seed repeats exactly; lanes.h says how.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "tests/simulator/cgroup_kernel.h"

namespace cgphase::simulator {

inline constexpr std::string_view kSimulatedRoot = "/simulated-cgroup2";
inline constexpr std::uint64_t kSimulatedDevice = 0x6370;

// Who makes a call. `guard` and `companion` are told by whoever lets them run (LaneScope).
enum class Lane { agent, raising, lowering, guard, companion };
inline constexpr int kLaneCount = 5;

struct Call {
  enum class Kind { open, read, write, look };  // look: stat, access and the like
  Kind kind = Kind::look;
  std::uint64_t inode = 0;
  std::string_view file;  // empty: the directory
  std::string_view text;  // to be written
  Lane lane = Lane::agent;
};

// What before() may answer beside an errno: the read gives only a part of the text.
inline constexpr int kShortRead = -1;

class CallObserver {
 public:
  virtual ~CallObserver() = default;
  // Before the call has any effect: 0, an errno to fail it with, or kShortRead.
  virtual int before(const Call& call) = 0;
  virtual void after(const Call& call, int error) = 0;
  // Whether a write waits though it need not reclaim: for a lock that others hold.
  virtual bool slow(const Call&) { return false; }
  // A write that reclaims, or is slow: lets time pass; true when a signal ended it.
  virtual bool blocked(const Call& call) = 0;
  // The agent's thread waits for another one: lets a little time pass.
  virtual void wait_a_little() = 0;
};

// Of this process. The kernel may be exchanged for a copy while nothing else runs.
void install(CgroupKernel* kernel, CallObserver* observer);
void uninstall();
CgroupKernel* exchange_kernel(CgroupKernel* kernel);

// Nanoseconds on the simulated steady clock.
void set_time_ns(std::int64_t now);
std::int64_t time_ns();

// Descriptors of the simulated hierarchy that are open.
std::size_t open_descriptors();

Lane current_lane();
// The calls of this thread count as those of `lane` for a while.
class LaneScope {
 public:
  explicit LaneScope(Lane lane);
  ~LaneScope();
  LaneScope(const LaneScope&) = delete;
  LaneScope& operator=(const LaneScope&) = delete;

 private:
  Lane before_;
};

// The thread of the test is in the simulator but while it lets the code under test run; the
// writer's threads the other way round.
class TestedScope {
 public:
  TestedScope() : TestedScope(true) {}
  ~TestedScope();
  TestedScope(const TestedScope&) = delete;
  TestedScope& operator=(const TestedScope&) = delete;

 protected:
  explicit TestedScope(bool tested);

 private:
  bool before_;
};
class SimulatorScope : TestedScope {
 public:
  SimulatorScope() : TestedScope(false) {}
};

// The calls that the lease file takes on the real file system, while nothing is installed: the n-th
// from now on fails with `error` (0: none does).
void fail_host_call(int n, int error);
int host_calls();  // since then

// Called at each allocation of the code under test, on its thread; allocations.cpp.
void on_allocation(std::function<void()> call);
void tell_allocation() noexcept;

}  // namespace cgphase::simulator
