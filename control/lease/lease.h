// A lease: the original and the written values of one file that cgphase changed.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "base/clock.h"
#include "cgroupfs/cgroup_id.h"
#include "cgroupfs/knob_file.h"
#include "cgroupfs/limits.h"

namespace cgphase {

// Limits of a record. A file with a longer path cannot be leased, so it is never written.
inline constexpr std::size_t kLeasePathBytes = 367;
inline constexpr std::size_t kLeaseReasonBytes = 47;  // a longer reason is cut

// Values that the writer threads may have left in the file, newest first: the last ones and those
// of writes in progress. The fast path has two values of its own.
inline constexpr std::size_t kModelValues = 4;
inline constexpr std::size_t kGuardValues = 2;

struct LeaseValues {
  KnobText original;                           // value that a restore writes
  std::array<KnobText, kModelValues> model{};  // empty where unused
  std::array<KnobText, kGuardValues> fast_path{};
  // From then on the original must be in the file, also while the daemon lives. The default: never.
  MonotonicTime deadline{};

  bool overdue(MonotonicTime now) const {
    return deadline != MonotonicTime{} && now >= deadline;
  }
  // Whether cgphase wrote `text`.
  bool is_ours(Knob knob, const KnobText& text) const {
    for (const KnobText& value : model)
      if (!value.empty() && same_value(knob, value, text)) return true;
    for (const KnobText& value : fast_path)
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
