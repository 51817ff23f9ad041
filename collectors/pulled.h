// Converts the record of a walk to the values of the cgroup's files.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "collectors/pull_record.h"
#include "collectors/sample.h"

namespace cgphase {

// The result of a walk for one cgroup; null if it has none.
struct Pulled {
  const pull_record* record = nullptr;
  std::optional<MemoryStat> memory = {};  // all lines of memory.stat
};

// User and system time as cpu.stat prints them. The kernel counts how often a tick saw each, splits
// the exact sum in that ratio, and lets neither fall (cputime_adjust() in kernel/sched/cputime.c).
class AdjustedCpuTime {
 public:
  // Fills user_usec and system_usec.
  void fill(const pull_record& record, CpuStat& cpu);

 private:
  std::uint64_t user_ns_ = 0, system_ns_ = 0;
};

// Averages of stalls. While tasks run or wait in a cgroup, the kernel updates them every 2 s. After
// that they are unchanged until a file is read, so that they are aged here.
class AgingStalls {
 public:
  // Call it once per update period of the kernel.
  void take(const pull_record& record);
  // 0: io, 1: memory, 2: CPU.
  Pressure pressure(std::size_t resource) const;

 private:
  std::array<std::uint64_t, 6> total_ns_{};
  std::array<std::uint64_t, 6> avg10_{}, avg60_{};  // per cent, with 11 fractional bits
  std::uint64_t updated_ = 0;
  int unchanged_ = 0;
};

CpuStat cpu_stat_of(const pull_record& record);
IoStat io_stat_of(const pull_record& record);
MemoryEvents memory_events_of(const pull_record& record);
Bytes pages(std::uint64_t count);

}  // namespace cgphase
