// GPUs of the kernel's own drivers (amdgpu, i915, xe, msm, panfrost, ...): what sysfs tells of
// them, and fdinfo of the processes that have one open.
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

// Bounds of one look at processes; what is beyond one is not looked at, and told.
inline constexpr std::size_t kMostDrmCgroups = 4096;
inline constexpr std::size_t kMostDrmProcesses = 4096;
inline constexpr std::size_t kMostDrmDescriptors = 16384;

// Owned and used by one thread.
class DrmGpus {
 public:
  // Looking at every descriptor of every process costs 1 to 3 us each.
  static constexpr std::chrono::seconds kPeriod{5};

  struct Roots {
    std::string sys, proc, cgroup;
  };
  explicit DrmGpus(Roots roots) : roots_(std::move(roots)) {}

  // Adds devices, and clients among the processes of `containers`, to `reading`; those of the last
  // look where it is not time for another.
  void read(MonotonicTime now, const std::vector<CgroupPath>& containers, GpuReading& reading);
  // Not all processes were looked at.
  bool incomplete() const { return incomplete_; }

 private:
  // A device's id and a client's.
  using ClientKey = std::pair<std::string, std::uint64_t>;
  class Look;

  void find_devices();
  void look(MonotonicTime now, const std::vector<CgroupPath>& containers);

  Roots roots_;
  std::optional<MonotonicTime> looked_;
  std::vector<GpuDevice> devices_;  // named after their drivers
  std::vector<GpuClient> clients_;    // `device` is an index in devices_
  std::map<ClientKey, DrmFdinfo> known_;
  bool incomplete_ = false;
};

}  // namespace cgphase
