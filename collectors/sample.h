// The data of a container at one moment. Counters stay counters, and absent values stay absent.
// model/ and policy/ derive rates and ratios.
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

// Values without a file, from BPF programs (collectors/ebpf/) and GPU drivers (collectors/gpu/).
// Absent if nothing counts them.

// Waits of all its threads: from runnable to running. `longest` is since the previous reading.
struct RunQueueStat {
  Counter wait_usec, waits, longest_wait_usec;
  Counter voluntary_switches, involuntary_switches;
  bool operator==(const RunQueueStat&) const = default;
};

// Waits by length: bucket i has waits of up to 2^(3 + i) us, the last one all longer ones. If only
// some events are counted, a mean represents several.
inline constexpr std::size_t kRunQueueBuckets = 16;
using RunQueueHistogram = std::array<std::uint64_t, kRunQueueBuckets>;

// Traffic of the sockets that were opened in it, without loopback: bytes and packets of the network
// layer.
struct NetworkStat {
  Counter receive_bytes, receive_packets, transmit_bytes, transmit_packets;
  Counter tcp_retransmits;
  bool operator==(const NetworkStat&) const = default;
};

// Completed requests to block devices, including writeback. The latency is the sum from request to
// completion.
struct BlockStat {
  Counter bytes, requests, latency_usec;
  bool operator==(const BlockStat&) const = default;
};

// GPU use of its processes over all GPUs: 1 is one whole GPU.
struct GpuStat {
  std::optional<double> utilisation_ratio;         // time in which its kernels ran
  std::optional<double> memory_utilisation_ratio;  // time in which they used GPU memory
  std::optional<Bytes> memory_bytes;
  bool operator==(const GpuStat&) const = default;
};

// How its programs use limits, as far as observed (agent/observers/program_watch.h).
struct ProgramStat {
  bool started = false;  // since the previous sample: one that may read the limits
  // Known to read the limits again while it runs: cpu.max, memory.high.
  bool reads_cpu = false, reads_memory = false;
};

// One reading of one container.
struct Sample {
  CgroupId id;
  CpuStat cpu;
  Limits limits;  // limits in force when read
  // When systemd last rewrote the limits of this unit. It marks a reset in `limits`.
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
  // When its counters were read; absent: at the start of its tick.
  std::optional<MonotonicTime> read_time;
};

// The resources that the ancestors of a container grant it, whatever its own limits are: their
// lowest quota in cores, and their lowest memory.max or memory.high.
struct AncestorLimits {
  double cpu_cores = std::numeric_limits<double>::infinity();
  double memory_bytes = std::numeric_limits<double>::infinity();
  bool operator==(const AncestorLimits&) const = default;
};

// The capacity of the whole host, or of the cgroup namespace if that has limits. It is the ceiling
// for a container without a limit.
struct HostCapacity {
  double cpu_cores = 0;
  Bytes memory;
  Bytes page{kPageBytes};  // memory limits are whole pages
  AncestorLimits ancestor_limits = {};    // the part for one container
  Bytes swap = {};
};

// One tick: all data of one moment, and the containers that came and went since the last tick.
struct NodeSample {
  MonotonicTime time;  // start of the reading
  WallTime wall_time;
  HostCapacity host;
  std::vector<ContainerInfo> appeared;  // in or before the tick of their first Sample
  std::vector<CgroupId> vanished;
  // Containers whose granted resources are new or changed; checked once a minute.
  std::vector<std::pair<CgroupId, AncestorLimits>> ancestor_limits;
  // Ascending CgroupId. A sample with impossible values is left out (collectors/sample_filter.h).
  std::vector<Sample> containers;
};

// memory_need() of one sample. Every part of cgphase uses it (docs/safety.md).
inline std::optional<Bytes> memory_need(const Sample& sample) {
  return memory_need(sample.memory, sample.memory_current, sample.swap_current);
}
inline std::optional<Bytes> explained_memory_need(const Sample& sample) {
  return explained_memory_need(sample.memory, sample.memory_current);
}

// A write of another process to a limit file, as the kernel saw it begin. The write may have
// failed. Texts are foreign bytes.
struct LimitWrite {
  MonotonicTime time;
  std::uint64_t directory = 0;  // the inode of CgroupId: the cgroup of the file
  std::string file;             // "memory.max", "cpu.max" or "cpu.max.burst"
  std::string value;            // without white space around it; its first 43 bytes
  pid_t pid = 0;                // of the writing process, in the initial pid namespace
  std::string command;          // its comm
  std::uint64_t writer_cgroup = 0;  // inode of the writer's cgroup
  CgroupPath writer_path;           // of that cgroup; empty if it is gone or unknown
};

}  // namespace cgphase
