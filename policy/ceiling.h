// The effective limits of a container: its own, but at most what the host has and what the ancestor
// cgroups allow. Savings, free capacity and feasible limits are computed within them.
#pragma once

#include <algorithm>

#include "cgroupfs/limits.h"
#include "collectors/sample.h"

namespace cgphase {

// The most that one container can get from `host`. A capacity of 0 is unknown and limits nothing.
inline AncestorLimits within_host(const HostCapacity& host) {
  AncestorLimits most = host.ancestor_limits;
  if (host.cpu_cores > 0) most.cpu_cores = std::min(most.cpu_cores, host.cpu_cores);
  if (host.memory.value > 0)
    most.memory_bytes = std::min(most.memory_bytes, static_cast<double>(host.memory.value));
  return most;
}

inline double cpu_ceiling_cores(const Limits& limits, const HostCapacity& host) {
  return std::min(limits.cpu_cores().value_or(Cores{host.cpu_cores}).value,
                  within_host(host).cpu_cores);
}

inline double memory_ceiling_bytes(const Limits& limits, const HostCapacity& host) {
  return std::min(static_cast<double>(limits.memory_bytes().value_or(host.memory).value),
                  within_host(host).memory_bytes);
}

// `wanted`, at most the ceiling. Bytes are rounded up.
inline Cores capped_cores(double wanted, const Limits& original, const HostCapacity& host) {
  return Cores{std::min(wanted, cpu_ceiling_cores(original, host))};
}

inline Bytes capped_bytes(double wanted, const Limits& original, const HostCapacity& host) {
  const double ceiling = memory_ceiling_bytes(original, host);
  if (wanted < ceiling) return Bytes{static_cast<std::uint64_t>(wanted + 0.999)};
  const Bytes most = original.memory_bytes().value_or(host.memory);
  return ceiling < static_cast<double>(most.value) ? Bytes{static_cast<std::uint64_t>(ceiling)}
                                                   : most;
}

}  // namespace cgphase
