// The raw values of GPU drivers at one moment. A value that a driver does not report is absent,
// never zero.
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

// Limits of one reading; more is not read.
inline constexpr std::size_t kMostGpus = 64;  // MIG instances count as one each
inline constexpr std::size_t kMostGpuClients = 4096;  // processes on all GPUs

// One GPU or MIG instance, with the total use of all its processes.
struct GpuDevice {
  std::string id;      // "GPU-<uuid>", "MIG-<uuid>", else the PCI address; foreign bytes
  std::string name;    // the driver's name for it; foreign bytes, may be empty
  GpuStat use;         // use of the whole device
  std::optional<Bytes> memory_total;
  bool operator==(const GpuDevice&) const = default;
};

// The use of one GPU by one process. A process on two GPUs has two entries.
struct GpuClient {
  pid_t pid = 0;
  CgroupPath cgroup;       // empty if unknown, or outside the root
  std::size_t device = 0;  // index in GpuReading::devices
  GpuStat use;
  bool operator==(const GpuClient&) const = default;
};

struct GpuReading {
  MonotonicTime time;  // start of the reading
  std::vector<GpuDevice> devices;
  std::vector<GpuClient> clients;
  std::string summary;  // one sentence for `status`: what is read, or why nothing is
};

}  // namespace cgphase
