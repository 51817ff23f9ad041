// The most that a container may get: its original limit, or the host where it has none, as far as
// the cgroups around it grant it.
#pragma once

#include <algorithm>

#include "collectors/limits.h"
#include "collectors/sample.h"

namespace cgphase {

inline double cpu_ceiling_cores(const Limits& original, const HostCapacity& host) {
  return std::min(original.cpu_cores().value_or(Cores{host.cpu_cores}).value,
                  host.granted.cpu_cores);
}

inline double memory_ceiling_bytes(const Limits& original, const HostCapacity& host) {
  return std::min(static_cast<double>(original.memory_bytes().value_or(host.memory).value),
                  host.granted.memory_bytes);
}

// `wanted`, not above the ceiling. Bytes are rounded up.
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
