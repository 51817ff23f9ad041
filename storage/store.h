// History and journal: one SQLite database, one connection, WAL, EXCLUSIVE
// (docs/internals/storage.md). Owned by one thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "collectors/containers/container_info.h"
#include "policy/decision.h"
#include "storage/history_point.h"
#include "storage/journal_event.h"
#include "storage/stored_record.h"
#include "storage/table_page.h"

namespace cgphase {

// One byte more is refused (invalid). One image more deletes the one saved longest ago.
inline constexpr std::size_t kMaxLearnedBytes = 256 * 1024;  // of one image, as JSON text
inline constexpr std::int64_t kMaxLearnedImages = 256;
// The row of OOM floors and quarantines of all images. It is never deleted. No image has this name,
// because image names end with the key of a model.
inline constexpr const char* kSafetyMemoryName = "#oom";

// The version of the linked library: "SQLite 3.40.1".
std::string sqlite_release();

// Maximum ages of raw, medium and coarse samples (docs/internals/storage.md, "Tiers").
using TierAges = std::array<std::chrono::seconds, 3>;
inline constexpr TierAges kTierAges = {std::chrono::days(1), std::chrono::days(7),
                                       std::chrono::days(30)};

// Decisions, outcomes, containers and learned statistics are in the file when a call returns.
// Samples stay in memory for up to kFlushInterval, or until flush(); reading includes them. Samples
// that cannot be written are dropped and counted. Near the cap the oldest samples are thinned, then
// deleted. After several I/O errors in a row the store closes the file. Each call then tries to
// open it again; until that succeeds calls return io.
class Store {
 public:
  static constexpr std::chrono::seconds kFlushInterval{30};

  struct Options {
    std::string path;  // ":memory:" in tests
    std::string boot_id;
    Bytes cap{256 * kMiB};  // of the file and its -wal; applied at every open
    TierAges tier_ages = kTierAges;
    Bytes min_free{0};  // samples are dropped while the disk has less free space
    // If another process has locked the file, open() returns a detached store, and each call tries
    // to open the file. Decisions that earlier runs left open get an end with this time.
    std::optional<WallTime> wait_for_lock_since = {};
  };
  // A corrupt file is renamed to PATH.corrupt-N, one of an older schema to PATH.old-N; a new file
  // begins, and quarantined() returns that name. Errors: denied, io, not_found (no such directory),
  // unsupported (a newer schema), invalid (another process has it open and wait_for_lock_since is
  // absent, another program's database, a cap below 512 KiB).
  static Result<Store> open(const Options& options);
  // The file of a stopped daemon, for reading. Meanwhile no daemon can open it. Neither the file
  // nor its -wal is changed. Errors: not_found, denied, io, invalid (a daemon has it open, damaged,
  // not a database of cgphase), unsupported (another schema).
  static Result<Store> open_for_reading(const std::string& path);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();  // flushes if possible

  // Adding a container of this boot again replaces its names.
  Status add_container(const ContainerInfo& info, WallTime first_seen);
  // Points and decisions of an unknown container are stored under its id. `time` is that of the
  // tick; the default is the time of the last point. After an error nothing of this call is stored,
  // so the caller may repeat it. After a corrupt file was replaced (io) containers need their names
  // again.
  Status append(const std::vector<HistoryPoint>& points,
                const std::vector<JournalDecision>& decisions,
                const std::vector<JournalOutcome>& outcomes, std::optional<WallTime> time = {});
  // Without an error, all samples appended so far are in the file.
  Status flush();

  // Statistics learned by earlier runs of an image (policy/policy.h). Errors: not_found, invalid
  // (the stored text is damaged), io.
  Result<nlohmann::json> load_learned(const std::string& image);
  Status save_learned(const std::string& image, const nlohmann::json& learned);

  // One record or one container of this boot, and earlier ones with this name and engine that are
  // not among `others`.
  struct Subject {
    std::optional<std::int64_t> record;
    CgroupId id;  // without a record
    std::string name;
    Engine engine = Engine::cgroup;
    std::vector<CgroupId> others;
  };
  // Decisions with their outcomes, newest first, not later than `until`.
  Result<std::vector<JournalEntry>> entries(const Subject& subject, WallTime until, int limit);
  // Newest first; without a subject, of all containers of all boots.
  Result<std::vector<JournalEvent>> events(const std::optional<Subject>& subject,
                                           const EventSpan& span);
  // The records of a subject, newest first, at most kMostRuns. Earlier records are included only if
  // they have points from `from` to `until`.
  static constexpr std::size_t kMostRuns = 257;
  Result<std::vector<StoredRecord>> runs(const Subject& subject, WallTime from, WallTime until);
  // The newest container with this name (raw or as printed); else path; else engine id; else an
  // engine id that begins with `text` (4 letters or more).
  Result<std::optional<StoredRecord>> last_container(const std::string& text);
  // Oldest first, from <= time <= until.
  Result<std::vector<HistoryPoint>> history(CgroupId container, WallTime from, WallTime until,
                                            int limit);
  // Of all boots, with numbers above `after`, ascending; at most `limit`. Some have no points left.
  Result<std::vector<StoredRecord>> records(std::int64_t after, int limit);
  // The points of one record, like history(); their samples have the id {0, record}.
  Result<std::vector<HistoryPoint>> history_of(std::int64_t record, WallTime from, WallTime until,
                                               int limit);
  // storage/table_page.h
  Result<TablePage> table_page(const std::string& table, std::int64_t after);
  // The highest decision_id in the journal, or 0. New ids above it keep runs apart.
  Result<std::uint64_t> last_decision_id();
  // The time of the last applied decision in the journal.
  Result<std::optional<WallTime>> last_written();
  // Adds an outcome (overtaken, at `now`) to each applied decision of an earlier run without an
  // end.
  Status end_open_decisions(WallTime now);

  // The file is closed after I/O errors, or still locked by another process.
  bool detached() const;
  // Rises with each open of a file after the first: containers may need their names again.
  std::uint64_t reopen_count() const;
  // The file and its -wal; the size of a database in memory.
  std::uint64_t size_bytes() const;
  // Why samples are being dropped, for people; absent while they are written.
  const std::optional<std::string>& degraded() const;
  // The new name of the last file that was replaced since open().
  const std::optional<std::string>& quarantined() const;
  // Why the learned state of a file of an older schema is not in this one, for people. It is tried
  // again at the next open.
  const std::optional<std::string>& carry_failure() const;
  // Damaged blocks and journal rows that reading left out.
  std::uint64_t damaged_count() const;
  std::uint64_t dropped_samples() const;

 private:
  class Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cgphase
