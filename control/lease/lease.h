// The noun: what cgphase owes the machine for one file that it changed.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "cgroupfs/cgroup_id.h"
#include "cgroupfs/knob_file.h"
#include "cgroupfs/limits.h"

namespace cgphase {

// Bounds of a record; a longer path cannot be leased and so cannot be written.
inline constexpr std::size_t kLeasePathBytes = 367;
inline constexpr std::size_t kLeaseReasonBytes = 47;  // a longer reason is cut

// Values that the model plane may have left in the file, newest first: its last ones and those of
// writes that are still under way. The guard has a pair of its own.
inline constexpr std::size_t kModelValues = 4;
inline constexpr std::size_t kGuardValues = 2;

struct LeaseValues {
  KnobText original;                           // what restore puts back
  std::array<KnobText, kModelValues> model{};  // empty where unused
  std::array<KnobText, kGuardValues> guard{};

  // Whether `text` was written by cgphase.
  bool is_ours(Knob knob, const KnobText& text) const {
    for (const KnobText& value : model)
      if (!value.empty() && same_value(knob, value, text)) return true;
    for (const KnobText& value : guard)
      if (!value.empty() && same_value(knob, value, text)) return true;
    return false;
  }
};

struct Lease {
  CgroupId id;
  CgroupPath path;
  Knob knob = Knob::cpu_max;
  LeaseValues values;
  std::string reason;  // of the newest value
};

}  // namespace cgphase
