// Raw readings, as the kernel gave them: counters stay counters, absent stays absent. Rates and
// ratios are derived in model/ and policy/.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "collectors/cgroup_id.h"
#include "collectors/containers/container_info.h"
#include "collectors/limits.h"

namespace cgphase {

using Counter = std::optional<std::uint64_t>;

// Growth of a counter; absent when it was not read twice or fell.
inline Counter growth(const Counter& now, const Counter& before) {
  if (!now || !before || *now < *before) return std::nullopt;
  return *now - *before;
}

// cpu.stat. The bandwidth fields exist only with the cpu controller enabled.
struct CpuStat {
  Counter usage_usec, user_usec, system_usec;
  Counter nr_periods, nr_throttled, throttled_usec;
};

// memory.stat, the fields that need, cache and pressure are made of. Bytes, and event counters.
struct MemoryStat {
  Counter anon_bytes, file_bytes, shmem_bytes, unevictable_bytes;
  Counter hugetlb_bytes;  // Linux 6.13 and newer, where cgroup2 is mounted to charge huge pages
  // `kernel` + `sock`, or the sum of their parts where the kernel is too old for `kernel`.
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

// memory.events.local, of Linux 5.2 and newer: how often this cgroup's own limit was met. In
// memory.events those of its descendants at limits of theirs count too. A kill is counted where the
// victim was, which tells nothing of the limit.
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

// From here to Sample: what no file tells, from BPF programs (collectors/ebpf/) and GPU drivers
// (collectors/gpu/). Absent where nothing counts it.

// Of all its threads: from being runnable to running. `longest` is since the reading before.
struct RunQueueStat {
  Counter wait_usec, waits, longest_wait_usec;
  Counter voluntary_switches, involuntary_switches;
  bool operator==(const RunQueueStat&) const = default;
};

// Those waits by length: bucket i has those of up to 2^(3 + i) us, the last one all longer ones.
// While not all events are looked at, a mean stands for several.
inline constexpr std::size_t kRunQueueBuckets = 16;
using RunQueueHistogram = std::array<std::uint64_t, kRunQueueBuckets>;

// Of the sockets that were opened in it, loopback apart: bytes and packets of the network layer.
struct NetworkStat {
  Counter receive_bytes, receive_packets, transmit_bytes, transmit_packets;
  Counter tcp_retransmits;
  bool operator==(const NetworkStat&) const = default;
};

// Requests to block devices that were completed, written back cache too; latency from being asked
// for to completion, summed.
struct BlockStat {
  Counter bytes, requests, latency_usec;
  bool operator==(const BlockStat&) const = default;
};

// Of its processes, over all GPUs: 1 is the whole of one GPU.
struct GpuStat {
  std::optional<double> utilisation_ratio;         // of time in which its kernels ran
  std::optional<double> memory_utilisation_ratio;  // of time in which GPU memory was in use by them
  std::optional<Bytes> memory_bytes;
  bool operator==(const GpuStat&) const = default;
};

// What its programs do with limits, as far as somebody looks (agent/program_watch.h).
struct ProgramStat {
  bool started = false;  // since the sample before: one that may read the limits
  // Known to read them again while it runs: cpu.max, memory.high.
  bool reads_cpu = false, reads_memory = false;
};

// One reading of one container.
struct Sample {
  CgroupId id;
  CpuStat cpu;
  Limits limits;  // in force when read
  // When systemd was last seen to write the limits of this unit anew; a reset in `limits` is told.
  std::optional<MonotonicTime> limits_reset;
  std::optional<Bytes> memory_current, memory_peak;
  MemoryStat memory;
  MemoryEvents memory_events;
  OwnLimitEvents own_limit_events;
  std::optional<Bytes> swap_current;
  std::optional<MemoryLimit> swap_max;
  IoStat io;
  Counter pids_current;
  std::optional<MemoryLimit> pids_max;  // a count, "max" is empty
  Pressure cpu_pressure, memory_pressure, io_pressure;
  std::optional<bool> populated, frozen;  // cgroup.events
  RunQueueStat run_queue;
  NetworkStat network;
  BlockStat block;
  GpuStat gpu;
  ProgramStat programs;
  // When its counters were read; absent: when reading of its tick began.
  std::optional<MonotonicTime> read_time;
};

// What the cgroups around a container grant it whatever its own limits say: their lowest quota, in
// cores, and their lowest memory.max or memory.high.
struct Granted {
  double cpu_cores = std::numeric_limits<double>::infinity();
  double memory_bytes = std::numeric_limits<double>::infinity();
  bool operator==(const Granted&) const = default;
};

// What the whole host has, or the cgroup namespace where that has limits; the ceiling for a
// container without a limit.
struct HostCapacity {
  double cpu_cores = 0;
  Bytes memory;
  Bytes page{kPageBytes};  // limits of memory are whole ones
  Granted granted = {};    // of all this, where one container is meant
  Bytes swap = {};
};

// One tick: everything that was read at one moment, plus who came and went since the last one.
struct NodeSample {
  MonotonicTime time;  // when reading began
  WallTime wall_time;
  HostCapacity host;
  std::vector<ContainerInfo> appeared;  // before their first Sample
  std::vector<CgroupId> vanished;
  // Of those for which it changed, or is told for the first time; looked at once a minute.
  std::vector<std::pair<CgroupId, Granted>> granted;
  // Ascending CgroupId. One that told what cannot be is left out (collectors/sample_filter.h).
  std::vector<Sample> containers;
};

// memory.stat lags behind memory.current by the batches of each processor, and the two are read one
// after the other. A line that exceeds the charged total by more than this share is no reading.
inline constexpr std::uint64_t kMemorySkewShare = 8;  // 1/8

inline std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::uint64_t>::max() : sum;
}

// What a line of memory.stat says can be reclaimed; 0 where it says more than can be.
inline std::uint64_t reclaimable_bytes(const Sample& sample, const Counter& line) {
  const std::uint64_t bytes = line.value_or(0);
  if (!sample.memory_current) return bytes;
  const std::uint64_t charged = sample.memory_current->value;
  return bytes > saturating_add(charged, charged / kMemorySkewShare) ? 0 : bytes;
}

// The part of need that memory.stat explains: anon + shmem + locked file cache + huge pages +
// kernel memory but for reclaimable slab. Absent where memory.stat has none of its main lines.
inline std::optional<Bytes> explained_memory_need(const Sample& sample) {
  const MemoryStat& memory = sample.memory;
  if (!memory.anon_bytes && !memory.file_bytes && !memory.kernel_bytes) return std::nullopt;
  const std::uint64_t shmem = memory.shmem_bytes.value_or(0);
  // `unevictable` has locked pages of all kinds. Pages of files (`file` without shmem) that can be
  // evicted are on one of two lists.
  const std::uint64_t others =
      saturating_add(shmem, saturating_add(memory.inactive_file_bytes.value_or(0),
                                           memory.active_file_bytes.value_or(0)));
  const std::uint64_t file = memory.file_bytes.value_or(0);
  const std::uint64_t locked_file =
      std::min(memory.unevictable_bytes.value_or(0), file - std::min(file, others));
  const std::uint64_t kernel = memory.kernel_bytes.value_or(0);
  const std::uint64_t slab =
      std::min(reclaimable_bytes(sample, memory.slab_reclaimable_bytes), kernel);
  std::uint64_t sum = saturating_add(memory.anon_bytes.value_or(0), shmem);
  sum = saturating_add(sum, locked_file);
  sum = saturating_add(sum, memory.hugetlb_bytes.value_or(0));
  return Bytes{saturating_add(sum, kernel - slab)};
}

// Need: all that is charged and not known to be reclaimable, and what is swapped out. Charged
// memory that no line of memory.stat explains is need: huge pages before Linux 6.13, lines of
// future kernels. Page cache on the lists of files and reclaimable slab are not, dirty pages
// included; swapped pages that are still in memory count twice, as does the pool of zswap. Absent
// where memory.stat was not read. Every part of cgphase uses this function (docs/safety.md).
inline std::optional<Bytes> memory_need(const Sample& sample) {
  const std::optional<Bytes> explained = explained_memory_need(sample);
  // Without `anon` the explained part is known to be too small.
  if (!explained || (!sample.memory.anon_bytes && !sample.memory_current)) return std::nullopt;
  std::uint64_t need = explained->value;
  if (sample.memory_current) {
    const MemoryStat& memory = sample.memory;
    const std::uint64_t reclaimable = saturating_add(
        saturating_add(reclaimable_bytes(sample, memory.inactive_file_bytes),
                       reclaimable_bytes(sample, memory.active_file_bytes)),
        reclaimable_bytes(sample, memory.slab_reclaimable_bytes));
    const std::uint64_t charged = sample.memory_current->value;
    need = std::max(need, charged - std::min(charged, reclaimable));
  }
  return Bytes{saturating_add(need, sample.swap_current ? sample.swap_current->value : 0)};
}

}  // namespace cgphase
