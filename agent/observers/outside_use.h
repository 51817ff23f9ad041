// CPU and memory use outside of containers: the use of the host minus theirs.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "collectors/sample.h"
#include "core/core.h"
#include "policy/phase/histogram.h"

namespace cgphase {

// Reads cpu.stat of the root cgroup at each tick. /proc/meminfo costs the kernel more than the rest
// of a tick, so it is read every kMemoryPeriod. In a cgroup namespace the memory files of the root
// are read, too. If a file cannot be read, its value is absent. Owned and used by the agent's
// thread alone.
class OutsideUse {
 public:
  static constexpr std::chrono::seconds kMemoryPeriod{10};

  OutsideUse(std::string cgroup_root, std::string proc_root);

  void observe(const NodeSample& tick, std::span<const ContainerView* const> containers);
  // Quantile `share` of the use in the last hours; newer use has more weight.
  std::optional<double> cpu_cores(double share) const {
    return at_most(host_.cpu_cores, cpu_cores_.quantile(share));
  }
  std::optional<double> memory_bytes(double share) const {
    return at_most(static_cast<double>(host_.memory.value), memory_bytes_.quantile(share));
  }
  // The same quantile of both, and the newest reading of memory. 0 if nothing was read.
  OutsideShare share(double quantile) const {
    return {.cpu_cores = cpu_cores(quantile).value_or(0),
            .memory_bytes = memory_bytes(quantile).value_or(0),
            .memory_now_bytes = memory_now_bytes_.value_or(0)};
  }

 private:
  void observe_cpu(const NodeSample& tick, std::span<const ContainerView* const> containers);
  void observe_memory(const NodeSample& tick, std::span<const ContainerView* const> containers);

  // A quantile is rounded up, so it is capped at what the host has.
  static std::optional<double> at_most(double most, std::optional<double> value) {
    if (value && most > 0 && *value > most) return most;
    return value;
  }

  // Stays open while it can be read.
  struct OpenFile {
    std::string path;
    Fd fd;
  };
  // Empty if it cannot be read whole.
  static std::string_view text_of(OpenFile& file, std::span<char> buffer);
  std::optional<Bytes> need_in_namespace();

  OpenFile cpu_stat_, memory_current_, memory_stat_, meminfo_;
  DecayingHistogram cpu_cores_, memory_bytes_;
  std::optional<std::uint64_t> usage_usec_;
  HostCapacity host_;  // of the last tick
  MonotonicTime time_;
  std::optional<MonotonicTime> memory_time_;
  std::optional<double> memory_now_bytes_;
};

}  // namespace cgphase
