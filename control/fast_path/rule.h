// Decides when the fast path acts on one container. It is pure, so that each rule has a test
// without a kernel. It can only ask for more. Its numbers are those of the safety rules and its own
// below (docs/safety.md).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/units.h"
#include "cgroupfs/limits.h"
#include "collectors/sample.h"
#include "policy/safety_config.h"

namespace cgphase {

// Numbers copied from the safety rules, one copy per watched container.
struct FastPathNumbers {
  explicit FastPathNumbers(const SafetyConfig& safety)
      : at_risk_ratio(safety.at_risk_ratio),
        throttled_ratio(safety.throttled_ratio),
        cpu_raise_factor(safety.cpu_raise_factor),
        stall_full_avg10(safety.stall_full_avg10),
        at_risk_growth(safety.at_risk_growth),
        cpu_raises_window(safety.cpu_raises_window) {}
  double at_risk_ratio, throttled_ratio, cpu_raise_factor, stall_full_avg10;
  std::chrono::seconds at_risk_growth, cpu_raises_window;
};

// Shortest time over which growth is judged: two checks may follow each other immediately.
inline constexpr std::chrono::milliseconds kGrowthBaseline{100};
// The fast path's own window. The fast path checks more often than the safety rules and answers
// before their window is full.
inline constexpr std::chrono::seconds kFastPathThrottledWindow{1};

// The stall breaker of memory.high acts in two cases. Within the window there are `high` events and
// the kernel reports a stall. Or there are this many `high` events and reclaim is ineffective. That
// is: it frees less than a tenth of what it scans, `full` pressure exceeds stall_full_avg10, or no
// cache is left. One task that returns to user space above memory.high counts up to 17 events. Then
// it sleeps for up to 2 s (reclaim_high and mem_cgroup_handle_over_high in mm/memcontrol.c).
inline constexpr std::uint64_t kStallHighEvents = 10;
inline constexpr std::chrono::seconds kStallWindow{5};
inline constexpr double kStallReclaimRatio = 0.10;  // pgsteal to pgscan
inline constexpr double kStallFileRatio = 0.02;  // page cache to memory.current

// The delay that memory.high may cause before its original is restored: kDelayShare of the time
// plus kDelayBurst, which is 100 ms in 10 s. PSI `some` of memory measures the delay. On a kernel
// without PSI, the time counts during which memory.current is above memory.high.
inline constexpr double kDelayShare = 0.005;
inline constexpr std::chrono::milliseconds kDelayBurst{50};
// PSI sums lag by up to 2 s. A stall is blamed on memory.high for this long after it was reached.
inline constexpr std::chrono::seconds kDelayBlame{4};
// memory.current may exceed memory.high by the charges that the kernel batches per CPU.
inline constexpr double kAboveHighRatio = 1.01;

// An absent field disables its rule.
struct FastPathReading {
  MonotonicTime time;
  std::optional<Bytes> memory_current;
  std::optional<MemoryLimit> memory_max;   // in force
  std::optional<MemoryLimit> memory_high;  // in force, read if it is leased
  Counter max_events, oom_events;          // of this cgroup's own limit
  Counter high_events;
  Counter throttled_usec, throttled_periods;
  bool quota_is_ours = true;  // false: throttling by the owner's quota is no risk
  std::optional<bool> populated;
  bool full_stall = false;  // a PSI trigger (memory, `full`) has just fired
  Counter stalled_usec;     // PSI, memory, `some`: read if memory.high is leased
  std::optional<double> full_avg10;
  // Read only if needs_detail() asked for it.
  std::optional<Bytes> memory_need;
  std::optional<Bytes> page_cache;  // file without shmem
  Counter pgscan, pgsteal;
};

enum class CpuRaise { none, by_factor, to_original };
enum class MemoryRisk { none, event, stall, pressure, headroom };

struct FastPathVerdict {
  bool at_risk = false;  // check again soon
  bool throttled = false;  // since the last check
  CpuRaise cpu = CpuRaise::none;
  MemoryRisk memory = MemoryRisk::none;  // other than none: restore the originals
  // The last process ended or the first one started. The next program sizes itself by the limits
  // that it finds.
  bool restarted = false;
};

// Compares the delay of one container with its bound. A leaky bucket that drains at kDelayShare and
// has room for kDelayBurst.
class DelayBudget {
 public:
  // Adds the delay since the last call, `elapsed` ago. True if the bound is exceeded.
  bool add(std::chrono::nanoseconds delayed, std::chrono::nanoseconds elapsed) {
    const auto drained =
        std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed * kDelayShare);
    level_ = std::max(level_ - drained, level_.zero()) + delayed;
    return level_ > kDelayBurst;
  }

 private:
  std::chrono::nanoseconds level_{0};
};

// The rules for one container. Nothing is allocated.
class FastPathRule {
 public:
  explicit FastPathRule(const FastPathNumbers& numbers = FastPathNumbers(SafetyConfig{}))
      : numbers_(numbers) {}
  const FastPathNumbers& numbers() const { return numbers_; }

  // Whether memory.stat is worth reading: memory.current, cache included, is close to the limit or
  // grows towards it, or the `high` events grow.
  bool needs_detail(const FastPathReading& reading) const;
  FastPathVerdict step(const FastPathReading& reading);
  // Call this after a raise that step() asked for was written. The next raise within
  // cpu_raises_window goes to the original.
  void cpu_raised(MonotonicTime time) { last_cpu_raise_ = time; }
  // Call this while nothing is lowered: present counters are then not compared with later ones.
  void pause();

 private:
  bool close_to_limit(const FastPathReading& reading,
                      std::optional<Bytes> FastPathReading::*use) const;
  CpuRaise judge_cpu(const FastPathReading& reading);
  MemoryRisk judge_memory(const FastPathReading& reading);
  bool stalls(const FastPathReading& reading);
  bool delayed(const FastPathReading& reading);

  FastPathNumbers numbers_;
  std::optional<FastPathReading> previous_;
  std::optional<FastPathReading> growth_base_;   // growth is measured from here
  std::optional<FastPathReading> window_;        // start of the throttling window
  std::optional<FastPathReading> stall_window_;  // start of the count of `high` events
  std::optional<MonotonicTime> last_cpu_raise_;
  DelayBudget delay_;
  std::optional<MonotonicTime> met_high_;  // when memory.high was last reached
};

// How long a container is checked more often after the kernel reported pressure on it. cpu.stat
// shows a throttled period only at its end, and no event reports it. CPU pressure is mostly
// ordinary waiting for a processor on a busy host. So the checks within a period are used only if
// tasks are throttled too, and once after a quiet time.
inline constexpr std::chrono::milliseconds kGuardAlert{600};
inline constexpr std::chrono::milliseconds kPeriodSpan{120};
inline constexpr std::chrono::milliseconds kPeriodLook{20};  // between checks within a period
// Longer than the window of a trigger, which fires once per window.
inline constexpr std::chrono::milliseconds kPressureQuiet{2000};

class PressureAlert {
 public:
  // Call this at each check. `memory` and `cpu`: the kernel reported such pressure, for `cpu` only
  // if the quota is ours. `throttled`: tasks were throttled since the last check.
  void step(MonotonicTime now, bool memory, bool cpu, bool throttled);
  // Whether to check every 150 ms.
  bool alert(MonotonicTime now) const { return now < alert_until_; }
  // Whether a throttled period may be about to end.
  bool in_period(MonotonicTime now) const { return now < period_until_; }

 private:
  MonotonicTime alert_until_, period_until_;
  std::optional<MonotonicTime> last_cpu_, last_throttled_;
};

// Limits how often one container is checked out of turn: a few times at once, then at a steady
// rate. This is the generic cell rate algorithm (ITU-T I.371). A container whose files change all
// the time, for example one stopped by its own memory.high, must not keep the fast path from the
// others.
inline constexpr int kPromptLooks = 8;
inline constexpr std::chrono::milliseconds kPromptLookPace{50};

class LookBudget {
 public:
  // Whether a check may happen now. If so, it is counted.
  bool take(MonotonicTime now) {
    if (now < next()) return false;
    spent_until_ = std::max(spent_until_, now) + kPromptLookPace;
    return true;
  }
  // When the next check may happen.
  MonotonicTime next() const { return spent_until_ - (kPromptLooks - 1) * kPromptLookPace; }

 private:
  MonotonicTime spent_until_{};
};

}  // namespace cgphase
