// What the owner of a container asks for, by labels of the container or in the configuration: a
// class, and what it keeps at least (docs/concepts.md).
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"

namespace cgphase {

// Who goes first where not all can have what they want.
enum class ServiceClass : std::uint8_t { critical, standard, batch };

struct Terms {
  ServiceClass service_class = ServiceClass::standard;
  std::optional<Cores> cpu_min;     // cgphase sets no lower limit
  std::optional<Bytes> memory_min;  // the same
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

}  // namespace cgphase
