// The leases of this machine: RUNTIME_DIR/leases, a preallocated file that every process of cgphase
// maps. It survives the daemon, not a reboot (cgroups start afresh then), so it lies on tmpfs and
// nothing is ever synced. Storing a lease is a few stores to mapped memory: no allocation, no disk.
//
// Format (version kLeaseVersion, native byte order): one header page, then `record_count` records
// of 1024 bytes. A record has an identity (cgroup, path, knob), two slots of the model plane and
// two of the guard. Each store goes to the older of two slots and ends in a CRC-32C over the slot
// and its identity, so a store cut short by SIGKILL leaves the earlier copy in force, and a slot is
// never read together with the identity of another cgroup.
//
// Who writes what:
//   header, heartbeat, root  the owner: the one process that holds flock on the file (the daemon)
//   model slots              the owner's writer threads, under the table's mutex
//   guard slots              the owner's guard thread alone, without any lock
//   revocation counter       any process that restores while the owner lives
// Everybody may read at any time.
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
inline constexpr std::size_t kLeaseRootBytes = 1007;  // a longer root cannot be leased below

class LeaseTable {
 public:
  struct Options {
    std::string runtime_dir;  // made with mode 0750 where it is missing
    int records = kLeaseRecords;
    std::string boot_id = {};  // empty: /proc/sys/kernel/random/boot_id
  };

  // For the daemon: opens or creates the file (0600, never through a symbolic link) and becomes its
  // owner. Leases of an earlier process of this boot are kept: restore them first. A file of an
  // earlier boot is replaced. Errors: io (another process owns it and does not let go in 3 s: later
  // it may), denied (it belongs to somebody else), invalid (damaged), unsupported (written by
  // another version: only that one knows whether anything is held); the file is then left as it is.
  static Result<std::unique_ptr<LeaseTable>> open(const Options& options);

  // For restorers: the existing file, not owned. Errors: not_found (nothing was ever leased in this
  // boot), and as above.
  static Result<std::unique_ptr<LeaseTable>> open_existing(const Options& options);

  ~LeaseTable();
  LeaseTable(const LeaseTable&) = delete;
  LeaseTable& operator=(const LeaseTable&) = delete;

  // Becomes the owner if there is none: then no daemon is writing. Never waits.
  bool try_own();
  bool owned() const { return owned_; }
  // The process that last owned the file; it may be dead.
  pid_t owner_pid() const;

  // The cgroup root that the leased paths lie below, so that whoever restores need not be told.
  // Absent until the owner has said it.
  std::optional<std::string> cgroup_root() const;
  // The owner, before its first hold. Errors: invalid (longer than kLeaseRootBytes, or leases below
  // another root are held: they would be looked for in the wrong place).
  Status set_cgroup_root(const std::string& root);

  // --- the owner's writer threads ---

  // Stores that `next` is about to be written over `previous`. The first hold of a knob makes
  // `previous` its original; a `previous` that is neither original nor ours becomes the new
  // original (somebody else's intent that the agent has adopted). Returns the record. Errors:
  // invalid (the path is longer than kLeasePathBytes, or the table is full).
  Result<int> hold(CgroupId id, const CgroupPath& path, Knob knob, const KnobText& previous,
                   const KnobText& next, std::string_view reason);
  // The original is in the file again, or the cgroup is gone. Returns the last values, those of the
  // guard as they stand after the release (see release_restored in control/lease/restore.h).
  // Nothing where another thread released it first: the record may be somebody else's by now.
  LeaseValues release(int record, CgroupId id, Knob knob);
  // The record that is held for this knob.
  std::optional<int> find(CgroupId id, Knob knob) const;

  // --- any thread, any process ---

  int record_count() const;
  // Absent where the record is not held.
  std::optional<Lease> read(int record) const;
  std::vector<int> held() const;
  // The values alone, if the record is held for this knob; allocates nothing.
  std::optional<LeaseValues> read_values(int record, CgroupId id, Knob knob) const;

  // --- the guard thread ---

  // As hold(), for a raise by the guard; false where the record is not held for this knob any more.
  bool guard_hold(int record, CgroupId id, Knob knob, const KnobText& previous,
                  const KnobText& next);

  // --- the dead man's switch ---

  // The control loop lives. Zero before the first beat of an owner.
  void beat(MonotonicTime now);
  MonotonicTime last_beat() const;
  // A restorer put the originals back while the owner lives; the owner must lower nothing until it
  // has acknowledged that. Also true for a revocation that happened before.
  void revoke();
  std::uint64_t revocations() const;
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
  mutable std::mutex mutex_;  // guards index_, free_ and the stores to the model slots
  std::map<std::pair<CgroupId, Knob>, int> index_;
  std::vector<int> free_;
  bool taken_over_ = false;  // index_ tells what is held
};

}  // namespace cgphase
