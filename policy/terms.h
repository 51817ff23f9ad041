// What the owner of a container asks for and agrees to, by labels of the container or in the
// configuration (docs/concepts.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"

namespace cgphase {

// Who goes first where not all can have what they want.
enum class ServiceClass : std::uint8_t { critical, standard, batch };

// What cgphase changes of CPU: the weight of a class, which takes nothing while there is enough, or
// quotas, which throttle.
enum class CpuLever : std::uint8_t { weight, quota, both };

struct Terms {
  ServiceClass service_class = ServiceClass::standard;
  std::optional<Cores> cpu_min;     // cgphase sets no lower limit
  std::optional<Bytes> memory_min;  // the same
  // Above the original limit: cgphase may raise it so far while the host has room.
  std::optional<Cores> cpu_max;
  std::optional<Bytes> memory_max;
  std::optional<bool> sleep;  // memory is reclaimed while idle; absent: by class (core/sleep.h)
  // While the host is short of memory, cgphase may freeze a container of class batch for so long.
  std::optional<std::chrono::seconds> freeze_longest;
  friend bool operator==(const Terms&, const Terms&) = default;
};

constexpr const char* to_string(ServiceClass service_class) {
  switch (service_class) {
    case ServiceClass::critical: return "critical";
    case ServiceClass::standard: return "standard";
    case ServiceClass::batch: return "batch";
  }
  return "";
}

constexpr const char* to_string(CpuLever lever) {
  switch (lever) {
    case CpuLever::weight: return "weight";
    case CpuLever::quota: return "quota";
    case CpuLever::both: return "both";
  }
  return "";
}

constexpr std::optional<CpuLever> parse_cpu_lever(std::string_view text) {
  for (const CpuLever lever : {CpuLever::weight, CpuLever::quota, CpuLever::both})
    if (text == to_string(lever)) return lever;
  return std::nullopt;
}

}  // namespace cgphase
