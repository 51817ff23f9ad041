#include "control/lease/deadline_watch.h"

#include <utility>
#include <vector>

#include "control/lease/companion.h"

namespace cgphase {

RestoreReport DeadlineWatch::check(LeaseTable& leases, const std::string& cgroup_root,
                                   MonotonicTime now) {
  const std::uint64_t deadlines = leases.deadlines();
  if (!any_ && deadlines == searched_) return {};
  searched_ = deadlines;
  any_ = false;
  std::vector<RecordedLease> due;
  for (RecordedLease& one : recorded_leases(leases)) {
    if (one.lease.values.deadline == MonotonicTime{}) continue;
    if (one.lease.values.overdue(now - kWatchInterval)) due.push_back(std::move(one));
    else any_ = true;
  }
  if (due.empty()) return {};
  const std::string root = leases.cgroup_root().value_or(cgroup_root);
  const auto by_path = [&](const Lease& lease) { return open_leased_directory(root, lease); };
  RestoreReport report = restore_recorded(leases, std::move(due), by_path, {});
  any_ = any_ || !report.failures.empty();
  return report;
}

}  // namespace cgphase
