// What GPU drivers told at one moment. Raw: what a driver does not tell is absent, never zero.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "base/units.h"
#include "cgroupfs/cgroup_id.h"
#include "collectors/sample.h"

namespace cgphase {

// Bounds of one reading; what is beyond them is not read.
inline constexpr std::size_t kMostGpus = 64;  // MIG instances count as one each
inline constexpr std::size_t kMostGpuClients = 4096;  // processes, of all GPUs

// One GPU, or one MIG instance, with what all its processes use together.
struct GpuDevice {
  std::string id;      // "GPU-<uuid>", "MIG-<uuid>", else the PCI address; foreign bytes
  std::string name;    // as the driver calls it; foreign bytes, may be empty
  GpuStat use;         // of the whole device
  std::optional<Bytes> memory_total;
  bool operator==(const GpuDevice&) const = default;
};

// What one process uses of one GPU; a process on two of them stands in two.
struct GpuClient {
  pid_t pid = 0;
  CgroupPath cgroup;       // empty where it is not to be had, or outside the root
  std::size_t device = 0;  // index in GpuReading::devices
  GpuStat use;
  bool operator==(const GpuClient&) const = default;
};

struct GpuReading {
  MonotonicTime time;  // when reading began
  std::vector<GpuDevice> devices;
  std::vector<GpuClient> clients;
  std::string told;    // one sentence for `status`: what is read, or why nothing is
};

}  // namespace cgphase
