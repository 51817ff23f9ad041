// What is used on this host outside of containers: all that is used, less what they use.
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

// cpu.stat of the root cgroup at each tick, and /proc/meminfo, which costs the kernel more to write
// than the rest of a tick, every kMemoryPeriod; where they cannot be read nothing is known. With
// meminfo, the memory files of the root, where it is that of a cgroup namespace. Owned and used by
// the agent's thread alone.
class OutsideUse {
 public:
  static constexpr std::chrono::seconds kMemoryPeriod{10};

  OutsideUse(std::string cgroup_root, std::string proc_root);

  void observe(const NodeSample& tick, std::span<const ContainerView* const> containers);
  // Of the last hours, the newer the more: what it did not pass in this share of the time.
  std::optional<double> cpu_cores(double share) const {
    return at_most(host_.cpu_cores, cpu_cores_.quantile(share));
  }
  std::optional<double> memory_bytes(double share) const {
    return at_most(static_cast<double>(host_.memory.value), memory_bytes_.quantile(share));
  }

 private:
  void observe_cpu(const NodeSample& tick, std::span<const ContainerView* const> containers);
  void observe_memory(const NodeSample& tick, std::span<const ContainerView* const> containers);

  // A quantile is rounded up; the host has no more.
  static std::optional<double> at_most(double most, std::optional<double> value) {
    if (value && most > 0 && *value > most) return most;
    return value;
  }

  // Stays open while it can be read.
  struct HeldFile {
    std::string path;
    Fd fd;
  };
  // Empty where it cannot be read whole.
  static std::string_view text_of(HeldFile& file, std::span<char> buffer);
  std::optional<Bytes> need_in_namespace();

  HeldFile cpu_stat_, memory_current_, memory_stat_, meminfo_;
  DecayingHistogram cpu_cores_, memory_bytes_;
  std::optional<std::uint64_t> usage_usec_;
  HostCapacity host_;  // of the last tick
  MonotonicTime time_;
  std::optional<MonotonicTime> memory_time_;
};

}  // namespace cgphase
