// How much a lowered limit gives back to the host.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collectors/sample.h"

namespace cgphase {

// Against the original limits. Never negative. 0 if the original has no limit: an unlimited
// container never counts as saved.
struct Saving {
  double cpu_cores = 0;
  std::uint64_t memory_bytes = 0;
};

// Capacity above that of the host or of the ancestor cgroups never belonged to the container.
// `granted` is within_host() (policy/ceiling.h).
inline Saving saving(const Limits& original, const Limits& in_force,
                     const AncestorLimits& ancestor_limits = {}) {
  const auto given_back = [](double before, double now, double most) {
    return std::max(0.0, std::min(before, most) - std::min(now, most));
  };
  Saving out;
  const auto cpu_before = original.cpu_cores(), cpu_now = in_force.cpu_cores();
  if (cpu_before && cpu_now)
    out.cpu_cores = given_back(cpu_before->value, cpu_now->value, ancestor_limits.cpu_cores);
  const auto before = original.memory_bytes(), now = in_force.memory_bytes();
  if (before && now)
    out.memory_bytes = static_cast<std::uint64_t>(
        given_back(static_cast<double>(before->value), static_cast<double>(now->value),
                   ancestor_limits.memory_bytes));
  return out;
}

}  // namespace cgphase
