// The door to what GPU drivers tell of processes. A driver may take as long as it likes, for ever
// too: nobody waits for it, neither a tick nor the end of the daemon.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cgroupfs/cgroup_id.h"
#include "collectors/gpu/gpu_reading.h"
#include "collectors/node_sampler.h"

namespace cgphase {

// Owned and used by one thread; no call waits for a driver.
class GpuSource {
 public:
  // What is older tells of nobody any more.
  static constexpr std::chrono::seconds kStale{5};

  GpuSource() = default;
  GpuSource(const GpuSource&) = delete;
  GpuSource& operator=(const GpuSource&) = delete;
  virtual ~GpuSource() = default;

  // Whose processes to look for where a driver does not list them itself; from now on.
  virtual void set_containers(std::vector<CgroupPath> paths) = 0;

  // The newest reading; null before the first, and where there can be none.
  virtual std::shared_ptr<const GpuReading> latest() const = 0;

  // For `status`: one line.
  virtual Source source(MonotonicTime now) const = 0;
};

// None: `why` is what `status` says.
std::unique_ptr<GpuSource> no_gpu_source(const std::string& why);

}  // namespace cgphase
