// Puts original limits back from leases alone: no model, no database, no libcgroup. Used by the
// daemon, by its dead-man companion and by the program cgphase-restore.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "control/lease/lease_table.h"
#include "control/limit_writer.h"

namespace cgphase {

using RestoreReport = LimitWriter::RestoreReport;

// A descriptor of the directory of `lease`, if the cgroup at its path is still the same one.
// Errors: gone (removed, or another cgroup of that name); invalid where the root is not on the file
// system of the lease's cgroup, which says nothing about that cgroup.
using DirectoryOpener = std::function<Result<Fd>(const Lease& lease)>;
Result<Fd> open_leased_directory(const std::string& cgroup_root, const Lease& lease);

struct HeldLease {
  int record = 0;
  Lease lease;
};
// All that is held, or that of one cgroup.
std::vector<HeldLease> held_leases(const LeaseTable& leases,
                                   std::optional<CgroupId> id = std::nullopt);

// Restores these leases, compare-and-set: a file that holds one of our values gets its original,
// one that holds the original stays, any other value is somebody's intent and stays (foreign). What
// the kernel refuses is tried again after the rest, until nothing more succeeds. A burst that it
// refuses because somebody has set a quota below the original becomes as large as that quota, and
// counts as restored. With `release` (only by the owner of the table) those that need nothing more
// are released. Blocks as long as the kernel does.
RestoreReport restore_held(LeaseTable& leases, std::vector<HeldLease> held,
                           const DirectoryOpener& open_directory, bool release);

// Releases a lease whose file holds its original. The guard may be raising the same file at this
// moment: it stores its lease, writes, and then looks whether the lease is still held; this stores
// the release and then looks whether the file still holds the original. One of the two sees the
// other and puts the original back. Likewise one whose file seemed to hold somebody else's value,
// for that may be the guard's. True where this put the original back.
bool release_restored(LeaseTable& leases, int record, CgroupId id, Knob knob, int directory_fd);

// All leases, by path below the table's root, or below `cgroup_root` where the table has none;
// released where the table is owned. An owner that lives is told (LeaseTable::revoke): before, so
// that it writes no more, and after, for it may have acknowledged and written in between.
RestoreReport restore_leases(LeaseTable& leases, const std::string& cgroup_root);

}  // namespace cgphase
