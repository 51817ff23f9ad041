// Which containers have a GPU, or may have one: the rails leave their CPU quota alone
// (docs/safety.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "collectors/gpu_devices.h"
#include "collectors/node_sampler.h"

namespace cgphase {

// Owned and used by the agent's thread alone.
class GpuWatch {
 public:
  static constexpr std::chrono::seconds kPeriod{60};
  // Once so much was looked at in a tick, 20 to 30 ms' worth, the others wait for the next one.
  static constexpr std::size_t kEnoughProcesses = 512;
  static constexpr std::size_t kEnoughEntries = 8192;

  explicit GpuWatch(std::string proc_root) : proc_root_(std::move(proc_root)) {}

  // After each reading, before the pipeline steps. Looks at a container when it has processes for
  // the first time and then once a minute, until a GPU is seen; that stands until they have ended.
  // On a host without a GPU it looks at nothing but /dev, once a minute. True where an answer
  // below may be another than before.
  bool look(const NodeSample& tick, const NodeSampler& sampler);

  // It has a GPU, or that cannot be ruled out.
  bool may_have_gpu(CgroupId id) const;

  Source source() const;

 private:
  struct Watched {
    GpuUse use = GpuUse::unknown;
    std::optional<MonotonicTime> looked;
  };
  bool look_at_host(MonotonicTime now);
  bool host_may_have_gpu() const { return !host_ || host_->gpu; }

  std::string proc_root_;
  std::optional<HostDevices> host_;  // as of the last look that succeeded
  std::optional<MonotonicTime> next_host_look_;
  std::string error_;                // of the last look at the host
  std::map<CgroupId, Watched> watched_;  // those with processes, where the host has a GPU
};

}  // namespace cgphase
