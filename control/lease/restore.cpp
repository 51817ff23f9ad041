#include "control/lease/restore.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "cgroupfs/cgroup_directory.h"
#include "cgroupfs/knob_file.h"
#include "cgroupfs/memory_reading.h"
#include "control/lease/reclaim.h"

namespace cgphase {
namespace {

enum class Fate { restored, already_original, foreign, gone, file_gone, failed };

// A memory.max above the original is put back only while this share of it stays free: the kernel
// would kill what does not fit.
constexpr double kFreeShare = 0.1;
constexpr std::chrono::seconds kReclaimDeadline{1};

struct Pending {
  RecordedLease recorded;
  Error error;
};

// A frozen container is thawed first. memory.max comes last, because it may have to reclaim.
// cpu.max.burst may not exceed the quota. If both rise, the quota goes first. If both fall, the
// first attempt at the quota is refused and the next pass succeeds.
bool in_order(const Pending& left, const Pending& right) {
  const Lease& first = left.recorded.lease;
  const Lease& second = right.recorded.lease;
  const auto key = [](const Lease& lease) {
    return std::tuple(lease.knob != Knob::cgroup_freeze, lease.knob == Knob::memory_max, lease.id,
                      lease.knob);
  };
  return key(first) < key(second);
}

Fate fate_of(Pending& pending, Error error) {
  if (error.kind == ErrorKind::gone) return Fate::gone;
  pending.error = std::move(error);
  return Fate::failed;
}

// If somebody set a quota below the original burst, restores as much of the burst as fits. A quota
// of ours does not count, because it is restored itself.
std::optional<KnobText> cut_original(const LeaseTable& leases, const Lease& lease,
                                     int directory_fd) {
  if (lease.knob != Knob::cpu_max_burst) return std::nullopt;
  const auto quota = read_knob(directory_fd, Knob::cpu_max);
  if (!quota) return std::nullopt;
  for (const RecordedLease& other : recorded_leases(leases))
    if (other.lease.id == lease.id && other.lease.knob == Knob::cpu_max &&
        other.lease.values.is_ours(Knob::cpu_max, *quota))
      return std::nullopt;
  return cut_to_quota(lease.values.original, *quota);
}

// Whether the original memory.max can be put back without a kill.
bool fits_original(const Lease& lease, const KnobText& found, int directory_fd, bool reclaim) {
  Limits now, before;
  if (!lease.values.is_ours(lease.knob, found) || !parse_knob(lease.knob, found.view(), now) ||
      !parse_knob(lease.knob, lease.values.original.view(), before) ||
      compare_knob(lease.knob, before, now) >= 0)
    return true;
  const Bytes limit = *before.memory_max->bytes;
  const auto need = read_memory_need(directory_fd);
  if (!need || static_cast<double>(need->value) >
                   static_cast<double>(limit.value) * (1 - kFreeShare))
    return false;
  const auto end = std::chrono::steady_clock::now() + kReclaimDeadline;
  const auto expired = [end] { return std::chrono::steady_clock::now() > end; };
  if (reclaim) (void)reclaim_below(directory_fd, limit, expired);
  const auto current = read_byte_count(directory_fd, "memory.current");
  return current && current->value + kRoomBytes / 2 <= limit.value;
}

Fate restore_one(const LeaseTable& leases, Pending& pending, int directory_fd, bool reclaim) {
  const Lease& lease = pending.recorded.lease;
  auto found = read_knob(directory_fd, lease.knob);
  if (found && lease.knob == Knob::memory_max) {
    if (!fits_original(lease, *found, directory_fd, reclaim))
      return fate_of(pending, Error{ErrorKind::io, "what is in use would not fit and be killed"});
    found = read_knob(directory_fd, lease.knob);  // somebody may have written it meanwhile
  }
  // The file disappears with its controller, and the limit with it. When it comes back, it has the
  // kernel's default.
  if (!found && found.error().kind == ErrorKind::not_found) return Fate::file_gone;
  if (!found) return fate_of(pending, found.error());
  if (same_value(lease.knob, *found, lease.values.original)) return Fate::already_original;
  if (!lease.values.is_ours(lease.knob, *found)) return Fate::foreign;
  KnobText back = lease.values.original;
  Status written = write_knob(directory_fd, lease.knob, back);
  if (!written)
    if (const auto cut = cut_original(leases, lease, directory_fd)) {
      back = *cut;
      written = write_knob(directory_fd, lease.knob, back);
    }
  if (!written) return fate_of(pending, written.error());
  const auto now = read_knob(directory_fd, lease.knob);
  if (!now) return fate_of(pending, now.error());
  if (!same_value(lease.knob, *now, back))
    return fate_of(pending, Error{ErrorKind::io, "the kernel did not keep the value"});
  return Fate::restored;
}

Fate restore_and_release(LeaseTable& leases, Pending& pending,
                         const DirectoryOpener& open_directory, RestoreOptions options) {
  const auto& [record, lease] = pending.recorded;
  const auto directory = open_directory(lease);
  const Fate fate =
      directory ? restore_one(leases, pending, directory->get(), options.reclaim)
                : fate_of(pending, directory.error());
  if (!options.release || fate == Fate::failed) return fate;
  if (fate == Fate::gone || fate == Fate::file_gone) {
    leases.release(record, lease.id, lease.knob);
    return fate;
  }
  // This includes values that look foreign: the fast path may have raised the limit since the lease
  // was read.
  const bool written =
      release_restored(leases, record, lease.id, lease.knob, directory->get());
  return written ? Fate::restored : fate;
}

std::string failure_line(const Pending& pending) {
  const Lease& lease = pending.recorded.lease;
  return escape_name(lease.path) + "/" + file_name(lease.knob) + ": original '" +
         std::string(lease.values.original.view()) + "' not restored: " + pending.error.text;
}

// Without this check every cgroup would look removed if the hierarchy is not mounted.
Status check_root(const std::string& cgroup_root, const Lease& lease) {
  const auto root = identify(cgroup_root);
  if (!root) return std::unexpected(root.error());
  if (root->device == lease.id.device) return {};
  return failure(ErrorKind::invalid,
                 cgroup_root + " is not on the file system of the leased cgroup; mount it there");
}

bool climbs(const CgroupPath& path) {
  const std::string padded = path + "/";
  return padded.find("/../") != std::string::npos || path.empty() || path.front() != '/';
}

}  // namespace

Result<Fd> open_leased_directory(const std::string& cgroup_root, const Lease& lease) {
  if (climbs(lease.path)) return failure(ErrorKind::invalid, "the leased path leaves the root");
  if (Status there = check_root(cgroup_root, lease); !there) return std::unexpected(there.error());
  auto fd = open_path(cgroup_root + lease.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!fd && fd.error().kind == ErrorKind::not_found)
    return failure(ErrorKind::gone, "the cgroup was removed");
  if (!fd) return fd;
  const auto found = identify(fd->get());
  if (!found) return std::unexpected(found.error());
  if (*found != lease.id)
    return failure(ErrorKind::gone, "another cgroup has this path now");
  return fd;
}

bool release_restored(LeaseTable& leases, int record, CgroupId id, Knob knob, int directory_fd) {
  const LeaseValues last = leases.release(record, id, knob);
  const auto found = read_knob(directory_fd, knob);
  if (!found || same_value(knob, *found, last.original) || !last.is_ours(knob, *found))
    return false;
  // A failure means that the cgroup was just removed.
  return write_knob(directory_fd, knob, last.original).has_value();
}

std::vector<RecordedLease> recorded_leases(const LeaseTable& leases, std::optional<CgroupId> id) {
  std::vector<int> records;
  if (!id) records = leases.leased_records();
  else
    for (const Knob knob : kKnobs)
      if (const auto record = leases.find(*id, knob)) records.push_back(*record);
  std::vector<RecordedLease> recorded;
  // Another thread may have released a record meanwhile and given it to another cgroup.
  for (const int record : records)
    if (auto lease = leases.read(record); lease && (!id || lease->id == *id))
      recorded.push_back({record, std::move(*lease)});
  return recorded;
}

RestoreReport restore_recorded(LeaseTable& leases, std::vector<RecordedLease> recorded,
                           const DirectoryOpener& open_directory, RestoreOptions options) {
  RestoreReport report;
  std::vector<Pending> pending;
  for (RecordedLease& one : recorded) pending.push_back({std::move(one), {}});
  std::sort(pending.begin(), pending.end(), in_order);
  std::set<CgroupId> gone;
  bool progress = true;
  while (!pending.empty() && progress) {
    progress = false;
    std::vector<Pending> refused;
    for (Pending& one : pending) {
      const Fate fate = restore_and_release(leases, one, open_directory, options);
      if (fate == Fate::failed) {
        refused.push_back(std::move(one));
        continue;
      }
      progress = true;
      if (fate == Fate::restored) ++report.restored;
      if (fate == Fate::foreign) {
        ++report.foreign;
        report.left.push_back(one.recorded.lease.knob);
      }
      if (fate == Fate::gone) gone.insert(one.recorded.lease.id);
    }
    pending = std::move(refused);
  }
  report.gone = static_cast<int>(gone.size());
  for (const Pending& one : pending) {
    report.left.push_back(one.recorded.lease.knob);
    report.failures.push_back(failure_line(one));
  }
  return report;
}

RestoreReport restore_leases(LeaseTable& leases, const std::string& cgroup_root) {
  const std::string root = leases.cgroup_root().value_or(cgroup_root);
  const auto by_path = [&](const Lease& lease) { return open_leased_directory(root, lease); };
  if (leases.owned()) return restore_recorded(leases, recorded_leases(leases), by_path,
                            {.release = true, .reclaim = true});
  leases.revoke();
  RestoreReport report = restore_recorded(leases, recorded_leases(leases), by_path,
                                          {.release = false, .reclaim = true});
  if (report.restored > 0) leases.revoke();
  return report;
}

}  // namespace cgphase
