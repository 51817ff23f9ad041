// What an administrator wants in force, in the place of what a policy wants. The rails hold as they
// do for a policy: it is approached in their steps, and may be kept from it.
#pragma once

#include <optional>

#include "base/units.h"

namespace cgphase {

struct Pin {
  std::optional<Cores> cpu;  // absent: as the policy has it
  std::optional<Bytes> memory;

  bool operator==(const Pin&) const = default;
  bool any() const { return cpu || memory; }
};

}  // namespace cgphase
