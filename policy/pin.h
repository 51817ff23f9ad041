// The limits that an administrator asks for, instead of the policy's recommendation. The safety
// rules apply as to a policy: they limit the steps and may block the pin.
#pragma once

#include <optional>

#include "base/units.h"

namespace cgphase {

struct Pin {
  std::optional<Cores> cpu;  // absent: the policy's recommendation
  std::optional<Bytes> memory;

  bool operator==(const Pin&) const = default;
  bool any() const { return cpu || memory; }
};

}  // namespace cgphase
