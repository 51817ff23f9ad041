// What a change means in writes, decided before the first of them. Pure.
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
  // Null where the knob is not leased.
  const LeaseValues* of(Knob knob) const {
    const auto index = static_cast<std::size_t>(knob);
    return held_[index] ? &values_[index] : nullptr;
  }

 private:
  std::array<LeaseValues, kKnobCount> values_{};
  std::array<bool, kKnobCount> held_{};
};

// The writes of `change`, in the order in which they must happen; none where the files say it
// already; a raise leaves out what would lower. A cpu.max.burst above a new quota is lowered with
// it and comes back with its original quota. Errors, all before anything is written: invalid (a
// value out of bounds; a file that holds neither the old value nor, for a raise, one of ours:
// somebody else changed it), not_found (this cgroup has no such file).
Result<std::vector<ChangeStep>> plan_change(const LimitChange& change, const Limits& in_file,
                                            const LeasesByKnob& leased);

}  // namespace cgphase
