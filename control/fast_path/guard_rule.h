// When the guard acts on one container: pure, so that each rule has a test without a kernel. It can
// only ask for more. Numbers: those of the rails, and its own below (docs/safety.md, fast path).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/units.h"
#include "cgroupfs/limits.h"
#include "collectors/sample.h"
#include "policy/rails_config.h"

namespace cgphase {

// What the guard takes from the rails, a copy for each container that it watches.
struct GuardNumbers {
  explicit GuardNumbers(const RailsConfig& rails)
      : at_risk_ratio(rails.at_risk_ratio),
        throttled_ratio(rails.throttled_ratio),
        cpu_raise_factor(rails.cpu_raise_factor),
        stall_full_avg10(rails.stall_full_avg10),
        at_risk_growth(rails.at_risk_growth),
        cpu_raises_window(rails.cpu_raises_window) {}
  double at_risk_ratio, throttled_ratio, cpu_raise_factor, stall_full_avg10;
  std::chrono::seconds at_risk_growth, cpu_raises_window;
};

// Growth is judged over no less: two looks may follow one another at once.
inline constexpr std::chrono::milliseconds kGrowthBaseline{100};
// The guard's own: it looks more often than the rails, and answers before their window is full.
inline constexpr std::chrono::seconds kGuardThrottledWindow{1};

// The stall breaker of memory.high: `high` events within the window, and the kernel tells of a
// stall; or so many of them, and reclaim that frees less than a tenth of what it scans, or tasks
// that stood still for stall_full_avg10 of ten seconds, or no cache left to reclaim. One task that
// returns to user space above memory.high already counts up to 17 events, then sleeps for up to 2 s
// (reclaim_high and mem_cgroup_handle_over_high in mm/memcontrol.c).
inline constexpr std::uint64_t kStallHighEvents = 10;
inline constexpr std::chrono::seconds kStallWindow{5};
inline constexpr double kStallReclaimRatio = 0.10;  // pgsteal to pgscan
inline constexpr double kStallFileRatio = 0.02;  // page cache to memory.current

// The bound on the delay that memory.high may cause before its original is back: kDelayShare of the
// time, and kDelayBurst on top of it: 100 ms in 10 s. PSI `some` of memory measures it; on a
// kernel without PSI the time that memory.current stays above memory.high does.
inline constexpr double kDelayShare = 0.005;
inline constexpr std::chrono::milliseconds kDelayBurst{50};
// PSI sums lag by up to 2 s: a stall is put down to memory.high for so long after it was met.
inline constexpr std::chrono::seconds kDelayBlame{4};
// memory.current passes memory.high by charges that the kernel batches per CPU.
inline constexpr double kAboveHighRatio = 1.01;

// Absent fields switch their rule off.
struct GuardReading {
  MonotonicTime time;
  std::optional<Bytes> memory_current;
  std::optional<MemoryLimit> memory_max;   // in force
  std::optional<MemoryLimit> memory_high;  // in force, where it is leased
  Counter max_events, oom_events;          // of this cgroup's own limit
  Counter high_events;
  Counter throttled_usec, throttled_periods;
  bool quota_is_ours = true;  // false: what it is throttled at is its owner's, and no risk
  std::optional<bool> populated;
  bool full_stall = false;  // the kernel has just told of a stall (PSI trigger, memory, `full`)
  Counter stalled_usec;     // PSI, memory, `some`: read where memory.high is leased
  std::optional<double> full_avg10;
  // Only where needs_detail() asked for it.
  std::optional<Bytes> memory_need;
  std::optional<Bytes> page_cache;  // file without shmem
  Counter pgscan, pgsteal;
};

enum class CpuRaise { none, by_factor, to_original };
enum class MemoryRisk { none, event, stall, pressure, headroom };

struct GuardVerdict {
  bool at_risk = false;  // look again soon
  bool throttled = false;  // since the last look
  CpuRaise cpu = CpuRaise::none;
  MemoryRisk memory = MemoryRisk::none;  // other than none: restore the originals
  // The last process ended, or the first came: it will size itself by the limits it finds.
  bool restarted = false;
};

// The delay of one container against its bound: a leaky bucket that drains by kDelayShare and holds
// kDelayBurst.
class DelayBudget {
 public:
  // `delayed` since the last call, which was `elapsed` ago. True where the bound is passed.
  bool add(std::chrono::nanoseconds delayed, std::chrono::nanoseconds elapsed) {
    const auto drained =
        std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed * kDelayShare);
    level_ = std::max(level_ - drained, level_.zero()) + delayed;
    return level_ > kDelayBurst;
  }

 private:
  std::chrono::nanoseconds level_{0};
};

// Of one container. Nothing is allocated.
class GuardRule {
 public:
  explicit GuardRule(const GuardNumbers& numbers = GuardNumbers(RailsConfig{}))
      : numbers_(numbers) {}
  const GuardNumbers& numbers() const { return numbers_; }

  // Whether memory.stat is worth reading: memory.current, cache and all, is close to the limit or
  // grows towards it, or `high` events do.
  bool needs_detail(const GuardReading& reading) const;
  GuardVerdict step(const GuardReading& reading);
  // A raise that step() asked for was written. The next one within cpu_raises_window goes to the
  // original.
  void cpu_raised(MonotonicTime time) { last_cpu_raise_ = time; }
  // Nothing is lowered at the moment: what happens now is not compared with what comes later.
  void pause();

 private:
  bool close_to_limit(const GuardReading& reading, std::optional<Bytes> GuardReading::*use) const;
  CpuRaise judge_cpu(const GuardReading& reading);
  MemoryRisk judge_memory(const GuardReading& reading);
  bool stalls(const GuardReading& reading);
  bool delayed(const GuardReading& reading);

  GuardNumbers numbers_;
  std::optional<GuardReading> previous_;
  std::optional<GuardReading> growth_base_;   // what growth is measured from
  std::optional<GuardReading> window_;        // where the throttling window began
  std::optional<GuardReading> stall_window_;  // where the count of `high` events began
  std::optional<MonotonicTime> last_cpu_raise_;
  DelayBudget delay_;
  std::optional<MonotonicTime> met_high_;  // memory.high, last
};

// How long one container is looked at more often after the kernel told of pressure on it: a period
// that is throttled now stands in cpu.stat at its end, and nobody tells of that. Pressure on the
// CPU is mostly the ordinary wait for a processor on a busy host: the looks of a period are spent
// on it where tasks are throttled too, and once after a quiet time.
inline constexpr std::chrono::milliseconds kGuardAlert{600};
inline constexpr std::chrono::milliseconds kPeriodSpan{120};
inline constexpr std::chrono::milliseconds kPeriodLook{20};  // so often in it
// Longer than the window of a trigger, which tells once in each.
inline constexpr std::chrono::milliseconds kPressureQuiet{2000};

class PressureAlert {
 public:
  // At each look: whether the kernel told of pressure on memory, of pressure on the CPU where the
  // quota is ours, and whether tasks were throttled since the last look.
  void step(MonotonicTime now, bool memory, bool cpu, bool throttled);
  // Look every 150 ms.
  bool alert(MonotonicTime now) const { return now < alert_until_; }
  // A throttled period may be about to end.
  bool in_period(MonotonicTime now) const { return now < period_until_; }

 private:
  MonotonicTime alert_until_, period_until_;
  std::optional<MonotonicTime> last_cpu_, last_throttled_;
};

// How often one container may be looked at out of turn: a few times at once, then at a steady pace
// (the generic cell rate algorithm, ITU-T I.371). A container whose files change all the time,
// such as one held at its own memory.high, must not keep the guard from the others.
inline constexpr int kPromptLooks = 8;
inline constexpr std::chrono::milliseconds kPromptLookPace{50};

class LookBudget {
 public:
  // Whether one may happen now; if so it is counted.
  bool take(MonotonicTime now) {
    if (now < next()) return false;
    spent_until_ = std::max(spent_until_, now) + kPromptLookPace;
    return true;
  }
  // When the next may happen.
  MonotonicTime next() const { return spent_until_ - (kPromptLooks - 1) * kPromptLookPace; }

 private:
  MonotonicTime spent_until_{};
};

}  // namespace cgphase
