// Turns a change into a list of writes before the first write. It has no side effects.
#pragma once

#include <array>
#include <vector>

#include "base/result.h"
#include "control/lease/lease.h"
#include "control/limit_writer.h"

namespace cgphase {

// One write of one file.
struct ChangeStep {
  Knob knob = Knob::cpu_max;
  KnobText from, to;
  bool lowers = false;
};

// The leases of one container.
class LeasesByKnob {
 public:
  void add(Knob knob, const LeaseValues& values) {
    values_[static_cast<std::size_t>(knob)] = values;
    held_[static_cast<std::size_t>(knob)] = true;
  }
  // Null if the knob is not leased.
  const LeaseValues* of(Knob knob) const {
    const auto index = static_cast<std::size_t>(knob);
    return held_[index] ? &values_[index] : nullptr;
  }

 private:
  std::array<LeaseValues, kKnobCount> values_{};
  std::array<bool, kKnobCount> held_{};
};

// Returns the writes of `change` in the order in which they must happen. The list is empty if the
// files already contain the values. A raise omits every write that would lower. A cpu.max.burst
// above a new quota is lowered with it and comes back with its original quota. No error occurs
// after a write. Errors: invalid (a value out of bounds; or a file changed by somebody else: it
// contains neither the old value nor, for a raise, one of ours), not_found (this cgroup has no such
// file).
Result<std::vector<ChangeStep>> plan_change(const LimitChange& change, const Limits& in_file,
                                            const LeasesByKnob& leased);

}  // namespace cgphase
