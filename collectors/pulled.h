// What a walk over cgroups told of one, as its files would tell it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "collectors/pull_record.h"
#include "collectors/sample.h"

namespace cgphase {

// Nothing, where the walk told nothing.
struct Pulled {
  const pull_record* record = nullptr;
  std::optional<MemoryStat> memory = {};  // all lines of memory.stat
};

// User and system time as cpu.stat tells them: the kernel knows how often a tick saw each, divides
// the exact sum by that, and lets neither fall (cputime_adjust() in kernel/sched/cputime.c).
class AdjustedCpuTime {
 public:
  // Into user_usec and system_usec.
  void fill(const pull_record& record, CpuStat& cpu);

 private:
  std::uint64_t user_ns_ = 0, system_ns_ = 0;
};

// Averages of stalls. While tasks run or wait in a cgroup the kernel brings them up to date every
// 2 s; after that it leaves them as they were until a file is read. So they are aged here.
class AgingStalls {
 public:
  // Once for each period of the kernel's.
  void take(const pull_record& record);
  // 0: io, 1: memory, 2: CPU.
  Pressure pressure(std::size_t resource) const;

 private:
  std::array<std::uint64_t, 6> total_ns_{};
  std::array<std::uint64_t, 6> avg10_{}, avg60_{};  // 11 bits behind the point, of percent
  std::uint64_t updated_ = 0;
  int unchanged_ = 0;
};

CpuStat cpu_stat_of(const pull_record& record);
IoStat io_stat_of(const pull_record& record);
MemoryEvents memory_events_of(const pull_record& record);
Bytes pages(std::uint64_t count);

}  // namespace cgphase
