// Reads all GPU drivers of this host, and finds the cgroups of the GPU processes.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "cgroupfs/cgroup_id.h"
#include "collectors/gpu/drm_gpus.h"
#include "collectors/gpu/gpu_reading.h"
#include "collectors/gpu/nvml_gpus.h"

namespace cgphase {

// Owned and used by one thread. A reading takes as long as the drivers need.
class GpuReader {
 public:
  struct Options {
    std::string nvml;  // the library, as an argument of dlopen(3)
    std::string proc_root = "/proc", sys_root = "/sys";
    std::string cgroup_root = "/sys/fs/cgroup";
  };

  explicit GpuReader(Options options);

  // `containers` are scanned for processes if a driver does not list them itself.
  GpuReading read(MonotonicTime now, const std::vector<CgroupPath>& containers);

 private:
  void read_tegra(GpuReading& reading) const;
  void join_cgroups(GpuReading& reading) const;
  bool devices_hidden() const;
  std::string summary(const GpuReading& reading) const;

  Options options_;
  CgroupPath above_root_;  // kernel_path_of_root()
  NvmlGpus nvml_;
  DrmGpus drm_;
};

}  // namespace cgphase
