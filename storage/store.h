// The history and the journal: one SQLite database, one connection, WAL, EXCLUSIVE
// (docs/internals/storage.md). Owned by one thread.
#pragma once

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
#include "storage/retention.h"
#include "storage/stored_record.h"
#include "storage/table_page.h"

namespace cgphase {

// Bounds; one past any of them is refused (invalid), or the oldest make room.
inline constexpr std::size_t kMaxLearnedBytes = 256 * 1024;  // of one image, as JSON text
inline constexpr std::int64_t kMaxLearnedImages = 256;       // the one saved longest ago goes
// What OOMs taught of all images, and quarantines, beside them: no image of this name, for each has
// a model's key. It never goes.
inline constexpr const char* kRailsMemoryName = "#oom";

// What is linked at run time: "SQLite 3.40.1".
std::string sqlite_release();

// Decisions, outcomes, containers and learned statistics are in the file when a call returns.
// Samples are held in memory for up to kFlushInterval (of the time that append() is told), or until
// flush(); reading sees them at once. When the file nears its cap the oldest samples make room. A
// file whose file system failed several calls is closed, and each call tries to open it anew; until
// that succeeds calls are io, and memory keeps what is not written.
class Store {
 public:
  static constexpr std::chrono::seconds kFlushInterval{10};

  struct Options {
    std::string path;  // ":memory:" in tests
    std::string boot_id;
    Bytes cap{256 * kMiB};  // of the file and its -wal; set at every open
    Retention retention = {};
    // While the disk has less free, samples stay in memory, where newer take the place of older;
    // the rest is written, out of a reserve of a 64th of the cap where the disk is full. 0: no such
    // bound and no reserve.
    Bytes min_free{0};
    // If another process has the file locked, open() returns a store that is let go, and each call
    // tries to open the file again. What earlier runs left open ended by this time.
    std::optional<WallTime> wait_for_lock_since = {};
  };
  // A corrupt file is renamed to PATH.corrupt-N and a new one begun; `quarantined()` says so.
  // Errors: denied, io, not_found (no such directory), unsupported (a newer schema), invalid
  // (another process has it open and wait_for_lock_since is absent, not a database of ours, a cap
  // below 512 KiB, tiers that are none).
  static Result<Store> open(const Options& options);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();  // flushes if it can

  // One transaction each. A container is named once per boot; naming it again replaces the name.
  // Points and decisions of a container that was not named are kept under its id alone. `time`: of
  // the tick; without one, that of the last point.
  Status add_container(const ContainerInfo& info, WallTime first_seen);
  // On an error nothing of this call was taken, so the same call may be made again: io when the
  // disk is full or fails, or when the file was found corrupt just now and was quarantined (the
  // next call goes to a new file; containers should be named again).
  Status append(const std::vector<HistoryPoint>& points,
                const std::vector<JournalDecision>& decisions,
                const std::vector<JournalOutcome>& outcomes, std::optional<WallTime> time = {});
  // All samples appended so far are in the file when it returns without error.
  Status flush();

  // What earlier runs of an image learned (policy/policy.h). not_found where there is none;
  // invalid where the stored text is damaged; io where it cannot be read.
  Result<nlohmann::json> load_learned(const std::string& image);
  Status save_learned(const std::string& image, const nlohmann::json& learned);

  // Newest first, at most `limit`, none later than `until`. A container is chosen by CgroupId of
  // this boot; without one, all containers of all boots.
  Result<std::vector<JournalDecision>> decisions(std::optional<CgroupId> container, WallTime until,
                                                 int limit);
  Result<std::vector<JournalOutcome>> outcomes(std::optional<CgroupId> container, WallTime until,
                                               int limit);
  // Of one record, or of a container of this boot, and of those before it that had this name under
  // this engine and are not among `others`.
  struct Subject {
    std::optional<std::int64_t> record;
    CgroupId id;  // without a record
    std::string name;
    Engine engine = Engine::cgroup;
    std::vector<CgroupId> others;
  };
  Result<std::vector<JournalEntry>> entries(const Subject& subject, WallTime until, int limit);
  // Newest first; of all containers of all boots without a subject.
  Result<std::vector<JournalEvent>> events(const std::optional<Subject>& subject,
                                           const EventSpan& span);
  // Who a subject is and was, newest first: at most kMostRuns. Those before the first only where
  // there are points of theirs from `from` to `until`.
  static constexpr std::size_t kMostRuns = 257;
  Result<std::vector<StoredRecord>> runs(const Subject& subject, WallTime from, WallTime until);
  // The newest that had this name (raw or as printed); else path; else engine's id; else whose id
  // began so (4 letters or more).
  Result<std::optional<StoredRecord>> last_container(const std::string& text);
  // Oldest first, from <= time <= until.
  Result<std::vector<HistoryPoint>> history(CgroupId container, WallTime from, WallTime until,
                                            int limit);
  // Of this boot, in the order in which they were first seen.
  Result<std::vector<StoredContainer>> containers();
  // Of all boots, ascending by their number, those above `after`; at most `limit`. Some may have no
  // points any more.
  Result<std::vector<StoredRecord>> records(std::int64_t after, int limit);
  // The points of one of them as history() gives them; their samples carry the id {0, record}.
  Result<std::vector<HistoryPoint>> history_of(std::int64_t record, WallTime from, WallTime until,
                                               int limit);
  // Rows of a plain table as they are, page by page (storage/table_page.h).
  Result<TablePage> table_page(const std::string& table, std::int64_t after);
  // The highest decision_id in the journal, 0 when it is empty. A pipeline that begins above it
  // keeps decisions and outcomes of different runs apart.
  Result<std::uint64_t> last_decision_id();
  // When a limit was last written, as far back as the journal goes.
  Result<std::optional<WallTime>> last_written();
  // Gives each decision of earlier runs that was written, or begun to be, and has no end, one at
  // `now`: overtaken, as its daemon was killed or its container went.
  Status end_open_decisions(WallTime now);

  // Tries to open a file that was let go; io while that cannot be read.
  Status open_again();
  bool let_go() const;
  // Instead of a file that was let go, to be asked: a store in memory of the samples that memory
  // holds. `why` is what its unreadable() says.
  Result<Store> stand_in(std::string why) const;
  // Of a stand-in: why all else cannot be read.
  const std::optional<std::string>& unreadable() const;

  // The file and its -wal; what is in use for a database in memory.
  std::uint64_t size_bytes() const;
  // Why samples are kept from the disk, for people; absent while they are written.
  std::optional<std::string> held_back() const;
  // Where the last corrupt file went; absent when there was none since open().
  const std::optional<std::string>& quarantined() const;
  // Blocks and journal rows that reading had to leave out because they are damaged.
  std::uint64_t damaged_count() const;
  // Samples that were kept from the disk until memory had no room for them any more.
  std::uint64_t dropped_samples() const;

 private:
  class Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cgphase
