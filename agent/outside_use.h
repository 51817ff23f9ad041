// What is used on this host outside of containers: all that is used, less what they use.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "agent/pipeline.h"
#include "base/clock.h"
#include "collectors/sample.h"
#include "policy/histogram.h"

namespace cgphase {

// Two small files per tick, cpu.stat of the root cgroup and /proc/meminfo; where they cannot be
// read nothing is known. Owned and used by the agent's thread alone.
class OutsideUse {
 public:
  OutsideUse(std::string cgroup_root, std::string proc_root);

  void observe(const NodeSample& tick, std::span<const ContainerView* const> containers);
  // Of the last hours, the newer the more: what it did not pass in this share of the time.
  std::optional<double> cpu_cores(double share) const { return cpu_cores_.quantile(share); }
  std::optional<double> memory_bytes(double share) const { return memory_bytes_.quantile(share); }

 private:
  void observe_cpu(const NodeSample& tick, std::span<const ContainerView* const> containers);
  void observe_memory(const NodeSample& tick, std::span<const ContainerView* const> containers);

  std::string cpu_stat_, meminfo_;
  DecayingHistogram cpu_cores_, memory_bytes_;
  std::optional<std::uint64_t> usage_usec_;
  MonotonicTime time_;
};

}  // namespace cgphase
