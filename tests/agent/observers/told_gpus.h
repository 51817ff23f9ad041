// GPUs that tell what a test says, read at the moment that it says.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectors/gpu/gpu_source.h"

namespace cgphase::test {

class ToldGpus final : public GpuSource {
 public:
  void set_containers(std::vector<CgroupPath> paths) override { containers = std::move(paths); }
  std::shared_ptr<const GpuReading> latest() const override { return reading; }
  Source source(MonotonicTime) const override { return {"GPU telemetry", true, "told"}; }

  // Two GPUs, with `clients` on them.
  void tell(MonotonicTime time, std::vector<GpuClient> clients) {
    GpuReading reported{.time = time, .devices = {}, .clients = std::move(clients), .summary = {}};
    for (const char* id : {"GPU-1", "GPU-2"})
      reported.devices.push_back({.id = id, .name = "Told GPU", .use = {0.5, 0.25, Bytes{512}},
                              .memory_total = Bytes{1024}});
    reading = std::make_shared<const GpuReading>(std::move(reported));
  }

  std::vector<CgroupPath> containers;
  std::shared_ptr<const GpuReading> reading;
};

}  // namespace cgphase::test
