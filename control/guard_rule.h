// When the guard acts on one container: pure, so that each rule has a test without a kernel. It can
// only ask for more. Numbers: docs/safety.md, cpu and memory.
#pragma once

#include <chrono>
#include <optional>

#include "base/clock.h"
#include "base/units.h"
#include "collectors/limits.h"
#include "collectors/sample.h"

namespace cgphase {

inline constexpr double kAtRiskRatio = 0.90;
inline constexpr std::chrono::seconds kGrowthHorizon{2};  // growing to the limit within this
inline constexpr double kThrottledRatio = 0.02;
inline constexpr std::chrono::seconds kThrottledWindow{1};
inline constexpr double kGuardRaiseFactor = 1.2;
inline constexpr std::chrono::minutes kSecondRaiseWindow{10};

// Absent fields switch their rule off.
struct GuardReading {
  MonotonicTime time;
  std::optional<Bytes> memory_current;
  std::optional<MemoryLimit> memory_max;  // in force
  Counter max_events, oom_events;         // of this cgroup's own limit
  Counter throttled_usec;
  std::optional<Bytes> memory_need;  // only where needs_need() asked for it
};

enum class CpuRaise { none, by_factor, to_original };
enum class MemoryRisk { none, event, headroom };

struct GuardVerdict {
  bool at_risk = false;  // look again soon
  CpuRaise cpu = CpuRaise::none;
  MemoryRisk memory = MemoryRisk::none;  // other than none: restore the originals
};

// Of one container. Nothing is allocated.
class GuardRule {
 public:
  // Whether memory.stat is worth reading: memory.current, cache and all, is close to the limit or
  // grows towards it.
  bool needs_need(const GuardReading& reading) const;
  GuardVerdict step(const GuardReading& reading);
  // A raise that step() asked for was written. The next one within kSecondRaiseWindow goes to the
  // original.
  void cpu_raised(MonotonicTime time) { last_cpu_raise_ = time; }
  // Nothing is lowered at the moment: what happens now is not compared with what comes later.
  void pause() { previous_.reset(), window_.reset(); }

 private:
  CpuRaise judge_cpu(const GuardReading& reading);
  MemoryRisk judge_memory(const GuardReading& reading) const;

  std::optional<GuardReading> previous_;
  std::optional<GuardReading> window_;  // where the throttling window began
  std::optional<MonotonicTime> last_cpu_raise_;
};

}  // namespace cgphase
