// The interface to GPU telemetry. A driver may take arbitrarily long, even forever. So nothing
// waits for it, neither a tick nor the end of the daemon.
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
  // Older readings are not used any more.
  static constexpr std::chrono::seconds kStale{5};

  GpuSource() = default;
  GpuSource(const GpuSource&) = delete;
  GpuSource& operator=(const GpuSource&) = delete;
  virtual ~GpuSource() = default;

  // Sets the containers that are scanned for processes if a driver does not list them itself.
  virtual void set_containers(std::vector<CgroupPath> paths) = 0;

  // The newest reading; null before the first one, and if there can be none.
  virtual std::shared_ptr<const GpuReading> latest() const = 0;

  // For `status`: one line.
  virtual Source source(MonotonicTime now) const = 0;
};

// A source without readings; `status` shows `why`.
std::unique_ptr<GpuSource> no_gpu_source(const std::string& why);

}  // namespace cgphase
