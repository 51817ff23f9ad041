// What is read of a container at one moment: counters stay counters, absent stays absent. Rates and
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
#include "cgroupfs/cgroup_id.h"
#include "cgroupfs/cgroup_stats.h"
#include "cgroupfs/limits.h"
#include "collectors/containers/container_info.h"

namespace cgphase {

// What no file tells, from BPF programs (collectors/ebpf/) and GPU drivers
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

// What its programs do with limits, as far as somebody looks (agent/observers/program_watch.h).
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

// memory_need() of what was read together. Every part of cgphase uses it (docs/safety.md).
inline std::optional<Bytes> memory_need(const Sample& sample) {
  return memory_need(sample.memory, sample.memory_current, sample.swap_current);
}
inline std::optional<Bytes> explained_memory_need(const Sample& sample) {
  return explained_memory_need(sample.memory, sample.memory_current);
}

}  // namespace cgphase
