// Contents of the files of one cgroup, as the kernel reports them. Counters are not turned into
// rates, and missing values stay absent. The definition of need is here too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/units.h"

namespace cgphase {

using Counter = std::optional<std::uint64_t>;

// Growth of a counter. Absent if one of the two readings is absent, or if the counter fell.
inline Counter growth(const Counter& now, const Counter& before) {
  if (!now || !before || *now < *before) return std::nullopt;
  return *now - *before;
}

// cpu.stat. The bandwidth fields exist only if the cpu controller is enabled.
struct CpuStat {
  Counter usage_usec, user_usec, system_usec;
  Counter nr_periods, nr_throttled, throttled_usec;
};

// memory.stat: the fields from which need, cache and pressure are computed. Bytes and event
// counters.
struct MemoryStat {
  Counter anon_bytes, file_bytes, shmem_bytes, unevictable_bytes;
  Counter hugetlb_bytes;  // Linux 6.13 and newer, if cgroup2 is mounted to charge huge pages
  // `kernel` + `sock`, or the sum of their parts if the kernel is too old for `kernel`.
  Counter kernel_bytes;
  Counter slab_reclaimable_bytes, slab_unreclaimable_bytes, sock_bytes;
  Counter inactive_file_bytes, active_file_bytes, inactive_anon_bytes;
  Counter pgfault, pgmajfault, workingset_refault_file, workingset_refault_anon;
  Counter pgscan, pgsteal, pgscan_direct;
};

// memory.events of the cgroup and its descendants.
struct MemoryEvents {
  Counter low, high, max, oom, oom_kill;
  bool operator==(const MemoryEvents&) const = default;
};

// memory.events.local, since Linux 5.2: how often this cgroup reached its own limit. memory.events
// also counts events of descendants at their own limits. A kill is counted in the victim's cgroup,
// so it says nothing about whose limit caused it.
struct OwnLimitEvents {
  Counter max, oom;
};

// io.stat summed over devices.
struct IoStat {
  Counter read_bytes, write_bytes, read_ios, write_ios;
};

// One line of a *.pressure file. Stall totals in microseconds; avg10 and avg60 as ratios 0..1.
struct PressureLine {
  std::optional<double> avg10_ratio, avg60_ratio;
  Counter total_usec;
};
struct Pressure {
  PressureLine some, full;
};

// memory.stat lags behind memory.current by the kernel's per-CPU batches, and the two files are
// read one after the other. A line that exceeds the charged total by more than this share is not
// trusted.
inline constexpr std::uint64_t kMemorySkewShare = 8;  // 1/8

inline std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::uint64_t>::max() : sum;
}

// Bytes that a line of memory.stat reports as reclaimable. 0 if the line exceeds what is possible.
inline std::uint64_t reclaimable_bytes(const std::optional<Bytes>& memory_current,
                                       const Counter& line) {
  const std::uint64_t bytes = line.value_or(0);
  if (!memory_current) return bytes;
  const std::uint64_t charged = memory_current->value;
  return bytes > saturating_add(charged, charged / kMemorySkewShare) ? 0 : bytes;
}

// The part of need that memory.stat explains: anon + shmem + locked file cache + huge pages +
// kernel memory without reclaimable slab. Absent if memory.stat lacks all its main lines.
inline std::optional<Bytes> explained_memory_need(const MemoryStat& memory,
                                                  const std::optional<Bytes>& memory_current) {
  if (!memory.anon_bytes && !memory.file_bytes && !memory.kernel_bytes) return std::nullopt;
  const std::uint64_t shmem = memory.shmem_bytes.value_or(0);
  // `unevictable` counts locked pages of all kinds. File pages that can be evicted (`file` without
  // shmem) are on one of two lists.
  const std::uint64_t others = saturating_add(
      shmem,
      saturating_add(memory.inactive_file_bytes.value_or(0), memory.active_file_bytes.value_or(0)));
  const std::uint64_t file = memory.file_bytes.value_or(0);
  const std::uint64_t locked_file =
      std::min(memory.unevictable_bytes.value_or(0), file - std::min(file, others));
  const std::uint64_t kernel = memory.kernel_bytes.value_or(0);
  const std::uint64_t slab =
      std::min(reclaimable_bytes(memory_current, memory.slab_reclaimable_bytes), kernel);
  std::uint64_t sum = saturating_add(memory.anon_bytes.value_or(0), shmem);
  sum = saturating_add(sum, locked_file);
  sum = saturating_add(sum, memory.hugetlb_bytes.value_or(0));
  return Bytes{saturating_add(sum, kernel - slab)};
}

// Need: all charged memory that is not known to be reclaimable, plus swapped memory. Charged memory
// that no line of memory.stat explains is need: huge pages before Linux 6.13, and lines of future
// kernels. Page cache on the file lists, dirty pages included, and reclaimable slab are not need.
// Swapped pages that are still in memory count twice, and so does the pool of zswap. Absent if
// memory.stat was not read.
inline std::optional<Bytes> memory_need(const MemoryStat& memory,
                                        const std::optional<Bytes>& memory_current,
                                        const std::optional<Bytes>& swap_current) {
  const std::optional<Bytes> explained = explained_memory_need(memory, memory_current);
  // Without `anon` and memory.current, the explained part is known to be too small.
  if (!explained || (!memory.anon_bytes && !memory_current)) return std::nullopt;
  std::uint64_t need = explained->value;
  if (memory_current) {
    const std::uint64_t reclaimable =
        saturating_add(saturating_add(reclaimable_bytes(memory_current, memory.inactive_file_bytes),
                                      reclaimable_bytes(memory_current, memory.active_file_bytes)),
                       reclaimable_bytes(memory_current, memory.slab_reclaimable_bytes));
    const std::uint64_t charged = memory_current->value;
    need = std::max(need, charged - std::min(charged, reclaimable));
  }
  return Bytes{saturating_add(need, swap_current ? swap_current->value : 0)};
}

}  // namespace cgphase
