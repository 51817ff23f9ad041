// The most that a container may get: its original limit, or the host where it has none.
#pragma once

#include <algorithm>

#include "collectors/limits.h"
#include "collectors/sample.h"

namespace cgphase {

inline double cpu_ceiling_cores(const Limits& original, const HostCapacity& host) {
  return original.cpu_cores().value_or(Cores{host.cpu_cores}).value;
}

inline double memory_ceiling_bytes(const Limits& original, const HostCapacity& host) {
  return static_cast<double>(original.memory_bytes().value_or(host.memory).value);
}

// `wanted`, not above the ceiling. Bytes are rounded up.
inline Cores capped_cores(double wanted, const Limits& original, const HostCapacity& host) {
  return Cores{std::min(wanted, cpu_ceiling_cores(original, host))};
}

inline Bytes capped_bytes(double wanted, const Limits& original, const HostCapacity& host) {
  const double ceiling = memory_ceiling_bytes(original, host);
  if (!(wanted < ceiling)) return original.memory_bytes().value_or(host.memory);
  return Bytes{static_cast<std::uint64_t>(wanted + 0.999)};
}

}  // namespace cgphase
