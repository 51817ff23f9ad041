// What each container uses of the GPUs of this host, from what the drivers tell of its processes.
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

  // After each reading of the files, before the core steps: fills Sample::gpu of the containers
  // that have a process on a GPU, from a reading that is not older than GpuSource::kStale. A
  // process is the innermost container's that its cgroup lies in.
  void fill(NodeSample& tick);

  // The ids of the GPUs that it uses, in the driver's order; foreign bytes.
  const std::vector<std::string>& gpus_of(CgroupId id) const;
  // What there is, with what all processes use together; empty where that is not known.
  const std::vector<GpuDevice>& devices() const;

  Source source(MonotonicTime now) const { return source_->source(now); }

 private:
  // Of one container.
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
