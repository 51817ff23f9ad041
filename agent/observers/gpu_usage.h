// GPU use of each container, from what the GPU drivers report about its processes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "collectors/container_paths.h"
#include "collectors/gpu/gpu_source.h"
#include "collectors/sample.h"

namespace cgphase {

// Owned and used by the agent's thread alone, which never waits for a driver.
class GpuUsage {
 public:
  explicit GpuUsage(std::unique_ptr<GpuSource> source) : source_(std::move(source)) {}

  // Call it after each sample, before the core steps. Fills Sample::gpu of the containers with a
  // process on a GPU, if the driver was read within GpuSource::kStale. A process counts for the
  // innermost container around its cgroup.
  void fill(NodeSample& tick);

  // Ids of the GPUs that it uses, in the driver's order; foreign bytes.
  const std::vector<std::string>& gpus_of(CgroupId id) const;
  // All GPUs, with the use of all processes; empty if unknown.
  const std::vector<GpuDevice>& devices() const;

  Source source(MonotonicTime now) const { return source_->source(now); }

 private:
  // The use of one container.
  struct Use {
    GpuStat sum;
    std::vector<std::string> gpus;
  };
  void add_up(const GpuReading& reading);

  std::unique_ptr<GpuSource> source_;
  ContainerPaths containers_;
  std::shared_ptr<const GpuReading> reading_;  // null: none, or stale
  std::map<CgroupId, Use> uses_;               // as of reading_
};

}  // namespace cgphase
