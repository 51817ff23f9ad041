// The interface between the real code and the simulated kernel. The test program is linked with
// --wrap for the system calls that cgphase makes (CMakeLists.txt). A CgroupKernel answers calls on
// paths below kSimulatedRoot and on descriptors opened there. All others go to the real kernel.
// Time (steady_clock) and the writer's deadlines are simulated, too.
//
// The writer's two threads are real. They run one at a time, and only while the test's thread waits
// for them, so a seed repeats exactly (lanes.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "tests/simulator/cgroup_kernel.h"

namespace cgphase::simulator {

inline constexpr std::string_view kSimulatedRoot = "/simulated-cgroup2";
inline constexpr std::uint64_t kSimulatedDevice = 0x6370;

// The thread that makes a call. `fast_path` and `companion` are set by the code that runs them
// (LaneScope).
enum class Lane { agent, raising, lowering, fast_path, companion };
inline constexpr int kLaneCount = 5;

struct Call {
  enum class Kind { open, read, write, look };  // look: stat, access and similar calls
  Kind kind = Kind::look;
  std::uint64_t inode = 0;
  std::string_view file;  // empty: the directory
  std::string_view text;  // text to write
  Lane lane = Lane::agent;
};

// A result of before() besides an errno: the read returns only a part of the text.
inline constexpr int kShortRead = -1;

class CallObserver {
 public:
  virtual ~CallObserver() = default;
  // Called before the call has any effect. Returns 0, an errno to fail it with, or kShortRead.
  virtual int before(const Call& call) = 0;
  virtual void after(const Call& call, int error) = 0;
  // Whether a write waits although it does not reclaim, for example for a lock.
  virtual bool slow(const Call&) { return false; }
  // Called for a write that reclaims or is slow. Lets time pass. Returns true if a signal ended it.
  virtual bool blocked(const Call& call) = 0;
  // Called while the agent's thread waits for another one. Lets a little time pass.
  virtual void wait_a_little() = 0;
};

// Sets the kernel and observer of this process. The kernel may be exchanged for a copy while
// nothing else runs.
void install(CgroupKernel* kernel, CallObserver* observer);
void uninstall();
CgroupKernel* exchange_kernel(CgroupKernel* kernel);

// Nanoseconds on the simulated steady clock.
void set_time_ns(std::int64_t now);
std::int64_t time_ns();

// The number of open descriptors of the simulated hierarchy.
std::size_t open_descriptors();

Lane current_lane();
// While it exists, the calls of this thread count as those of `lane`.
class LaneScope {
 public:
  explicit LaneScope(Lane lane);
  ~LaneScope();
  LaneScope(const LaneScope&) = delete;
  LaneScope& operator=(const LaneScope&) = delete;

 private:
  Lane before_;
};

// The test's thread is inside the simulator except while it runs the code under test. For the
// writer's threads it is the opposite.
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

// Counts the lease file's calls on the real file system while no kernel is installed. The n-th call
// from now on fails with `error` (0: none fails).
void fail_host_call(int n, int error);
int host_calls();  // number of calls since then

// Sets a function that is called at each allocation of the code under test, on its thread;
// allocations.cpp.
void on_allocation(std::function<void()> call);
void tell_allocation() noexcept;

}  // namespace cgphase::simulator
