// Reads GPUs with in-kernel drivers (amdgpu, i915, xe, msm, panfrost, ...) from sysfs and from
// fdinfo of the processes that have one open.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cgroupfs/cgroup_id.h"
#include "collectors/gpu/drm_fdinfo.h"
#include "collectors/gpu/gpu_reading.h"

namespace cgphase {

// Limits of one scan of processes. Beyond a limit nothing is read, and incomplete() is true.
inline constexpr std::size_t kMostDrmCgroups = 4096;
inline constexpr std::size_t kMostDrmProcesses = 4096;
inline constexpr std::size_t kMostDrmDescriptors = 16384;

// Owned and used by one thread.
class DrmGpus {
 public:
  // Reading every descriptor of every process takes 1 to 3 us each.
  static constexpr std::chrono::seconds kPeriod{5};

  struct Roots {
    std::string sys, proc, cgroup;
  };
  explicit DrmGpus(Roots roots) : roots_(std::move(roots)) {}

  // Adds devices, and clients among the processes of `containers`, to `reading`. Between two scans
  // it adds the results of the last scan.
  void read(MonotonicTime now, const std::vector<CgroupPath>& containers, GpuReading& reading);
  // True if not all processes were scanned.
  bool incomplete() const { return incomplete_; }

 private:
  // The id of a device and of a client.
  using ClientKey = std::pair<std::string, std::uint64_t>;
  class Scan;

  void find_devices();
  void scan(MonotonicTime now, const std::vector<CgroupPath>& containers);

  Roots roots_;
  std::optional<MonotonicTime> scan_time_;
  std::vector<GpuDevice> devices_;    // with the names of their drivers
  std::vector<GpuClient> clients_;    // `device` is an index in devices_
  std::map<ClientKey, DrmFdinfo> known_;
  bool incomplete_ = false;
};

}  // namespace cgphase
