// The leases of this machine are in RUNTIME_DIR/leases, a preallocated file that every cgphase
// process maps. A file with leases survives the daemon but not a reboot, after which cgroups start
// afresh. It is therefore on tmpfs and is never synced. Storing a lease is a few stores to mapped
// memory: no allocation, no disk.
//
// Format (version kLeaseVersion, native byte order): one header page, then `record_count` records
// of 1024 bytes. A record has an identity (cgroup, path, knob), two slots of the writer threads and
// two of the fast path. Each store goes to the older of two slots and ends with a CRC-32C over the
// slot and its identity. If SIGKILL interrupts a store, the earlier copy stays valid. A slot is
// never read with the identity of another cgroup.
//
// Writers:
//   header, heartbeat, root  the owner: the one process that holds flock on the file (the daemon)
//   model slots              the owner's writer threads, under the table's mutex
//   fast path slots              the owner's fast-path thread alone, without a lock
//   revocation counter       any process that restores while the owner lives
// Any process may read at any time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "control/lease/lease.h"
#include "control/lease/lease_file.h"

namespace cgphase {

inline constexpr int kLeaseRecords = 4096;
inline constexpr std::size_t kLeaseRootBytes = 1007;  // a longer root cannot be leased

class LeaseTable {
 public:
  struct Options {
    std::string runtime_dir;  // created with mode 0750 if missing
    int records = kLeaseRecords;
    std::string boot_id = {};  // empty: /proc/sys/kernel/random/boot_id
  };

  // For the daemon: opens or creates the file (0600, never through a symbolic link) and becomes its
  // owner. Leases of an earlier process of this boot are kept; restore them first. A file of an
  // earlier boot is replaced. After an error the file is unchanged. Errors: io (another process
  // still owns it after 3 s; a retry may succeed), denied (it belongs to another user), invalid
  // (damaged), unsupported (only the other version knows whether it contains leases).
  static Result<std::unique_ptr<LeaseTable>> open(const Options& options);

  // For restorers: opens the existing file without owning it. Errors: not_found (no limit was
  // leased in this boot), and those of open().
  static Result<std::unique_ptr<LeaseTable>> open_existing(const Options& options);

  ~LeaseTable();
  LeaseTable(const LeaseTable&) = delete;
  LeaseTable& operator=(const LeaseTable&) = delete;

  // Becomes the owner if there is none, so no daemon is writing. Never waits.
  bool try_own();
  bool owned() const { return owned_; }
  // Removes the file if nothing is leased, so that another version may start. For the owner, at its
  // end: a process that opened the file keeps a table that nobody else sees.
  void remove_unused();
  // The process that last owned the file; it may be dead.
  pid_t owner_pid() const;

  // The cgroup root of the leased paths, so that a restorer needs no option. Absent until the owner
  // has set it.
  std::optional<std::string> cgroup_root() const;
  // Called by the owner before its first record(). Errors: invalid (longer than kLeaseRootBytes, or
  // leases below another root exist, which would then be searched in the wrong place).
  Status set_cgroup_root(const std::string& root);

  // --- the owner's writer threads ---

  // Records that `next` is about to be written over `previous`. The first call for a knob makes
  // `previous` its original. If `previous` is neither the original nor a value of ours, it becomes
  // the new original: somebody else set it and the agent accepted it.
  // Without `deadline` an earlier one stays.
  // Returns the record. Errors: invalid (the path is longer than kLeasePathBytes, or the table is
  // full).
  Result<int> record(CgroupId id, const CgroupPath& path, Knob knob, const KnobText& previous,
                     const KnobText& next, std::string_view reason,
                     std::optional<MonotonicTime> deadline = {});
  // Ends a lease whose original is in the file again, or whose cgroup is gone. Returns the last
  // values; those of the fast path are read after the release (see release_restored in
  // control/lease/restore.h). Empty if another thread released it first: the record may belong to
  // another cgroup by now.
  LeaseValues release(int record, CgroupId id, Knob knob);
  // The record leased for this knob.
  std::optional<int> find(CgroupId id, Knob knob) const;

  // --- any thread, any process ---

  int record_count() const;
  // Absent if the record is not leased.
  std::optional<Lease> read(int record) const;
  std::vector<int> leased_records() const;
  // Counts the leases with a deadline so far. A restorer that found none in force need not search
  // again before the number changes.
  std::uint64_t deadlines() const;
  // Only the values, if the record is leased for this knob. Allocates nothing.
  std::optional<LeaseValues> read_values(int record, CgroupId id, Knob knob) const;

  // --- the fast-path thread ---

  // Like record(), for a raise by the fast path. False if the record is no longer leased for this
  // knob.
  bool lease_for_fast_path(int record, CgroupId id, Knob knob, const KnobText& previous,
                  const KnobText& next);

  // --- heartbeat and revocation ---

  // Records that the control loop is alive. Zero before an owner's first heartbeat.
  void beat(MonotonicTime now);
  MonotonicTime last_beat() const;
  // A restorer wrote the originals back while the owner lives. The owner must lower nothing until
  // it acknowledges that. Revocations from before the owner started count, too.
  void revoke();
  bool revoked() const;
  void acknowledge_revocation();

 private:
  struct File;  // the mapped file
  explicit LeaseTable(Fd fd, File* file, std::size_t bytes, std::string path);
  static Result<std::unique_ptr<LeaseTable>> map(Fd fd, std::string path);
  void take_over();
  void read_records(int first, int count, std::span<char> records) const;
  void begin_anew(int record);
  std::optional<int> claim(CgroupId id, const CgroupPath& path, Knob knob);

  Fd fd_;
  File* file_;
  std::size_t bytes_;
  std::string path_;
  bool owned_ = false;
  mutable std::mutex mutex_;  // protects index_, free_ and the stores to the model slots
  std::map<std::pair<CgroupId, Knob>, int> index_;
  std::vector<int> free_;
  bool taken_over_ = false;  // whether index_ is complete
};

}  // namespace cgphase
