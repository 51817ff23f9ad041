// Restores original limits from leases alone: no model, no database, no libcgroup. The daemon, the
// companion and the program cgphase-restore use it.
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

// Opens the directory of `lease`, if the cgroup at its path is still the same. Errors: gone
// (removed, or another cgroup of that name), invalid (the root is on another file system than the
// lease's cgroup, so the cgroup may still exist).
using DirectoryOpener = std::function<Result<Fd>(const Lease& lease)>;
Result<Fd> open_leased_directory(const std::string& cgroup_root, const Lease& lease);

struct RecordedLease {
  int record = 0;
  Lease lease;
};
// All leases, or those of one cgroup.
std::vector<RecordedLease> recorded_leases(const LeaseTable& leases,
                                   std::optional<CgroupId> id = std::nullopt);

struct RestoreOptions {
  bool release = false;  // the finished leases; only for the owner of the table
  bool reclaim = false;  // cache above an original memory.max, up to a second per container
};

// Restores these leases by compare-and-set. A file with one of our values gets its original. A file
// with the original stays, and so does any other value, which somebody else set (foreign). A write
// that the kernel refuses is retried after the others, until no more succeed. If somebody set a
// quota below the original burst, the burst becomes as large as that quota and counts as restored.
// A memory.max that the budget raised stays, with its lease and as a failure, while what is in use
// would not fit. Blocks as long as the kernel does.
RestoreReport restore_recorded(LeaseTable& leases, std::vector<RecordedLease> recorded,
                           const DirectoryOpener& open_directory, RestoreOptions options);

// Releases a lease whose file contains its original. The fast path may be raising the same file
// right now. It stores its lease, writes, and then checks whether the lease still exists. This
// function stores the release and then checks whether the file still contains the original. One of
// the two notices the other and writes the original back. The same is done for a file that seemed
// to contain somebody else's value, which may be the fast path's. Returns true if this function
// wrote the original.
bool release_restored(LeaseTable& leases, int record, CgroupId id, Knob knob, int directory_fd);

// Restores all leases, by path below the table's root, or below `cgroup_root` if the table has
// none. Releases them if the table is owned. A living owner is notified by LeaseTable::revoke
// twice: before, so that it stops writing, and after, because it may have acknowledged and written
// in between.
RestoreReport restore_leases(LeaseTable& leases, const std::string& cgroup_root);

}  // namespace cgphase
