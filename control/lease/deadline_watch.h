// Restores leases whose deadline has passed while the daemon lives. The daemon does so itself; this
// is for a daemon that beats and yet does not act.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "control/lease/lease_table.h"
#include "control/lease/restore.h"

namespace cgphase {

class DeadlineWatch {
 public:
  // Restores by path, as restore_leases(), and releases nothing. Only what was due a kWatchInterval
  // ago, so that the daemon has its turn first.
  RestoreReport check(LeaseTable& leases, const std::string& cgroup_root, MonotonicTime now);
  // Whether a deadline is still to come, or could not be kept. Then the next check should follow
  // after kWatchInterval.
  bool any() const { return any_; }

 private:
  bool any_ = false;
  std::uint64_t searched_ = 0;  // LeaseTable::deadlines() before the last search
};

}  // namespace cgphase
