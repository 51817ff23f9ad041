// Decisions and their outcomes as rows that a person can read with the sqlite3 shell.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "storage/sqlite.h"
#include "storage/store.h"

namespace cgphase {

// Of an outcome and of a decision's writer; longer text is truncated.
inline constexpr std::size_t kMaxDetailBytes = 1024;
// Approximate size of a decision with its index entries; the journal is bounded in rows.
inline constexpr std::int64_t kJournalRowBytes = 512;

class Journal {
 public:
  static Result<Journal> prepare(Connection& connection);

  // Within the caller's transaction. `container` is the row of table container.
  Status add(std::int64_t container, const JournalDecision& decision);
  Status add(std::int64_t container, const JournalOutcome& outcome);

  // Newest first, not later than `until`; without `container`, of all containers. A row with an
  // unknown word is left out and counted.
  Result<std::vector<JournalDecision>> decisions(std::optional<std::int64_t> container,
                                                 WallTime until, int limit);
  Result<std::vector<JournalOutcome>> outcomes(std::optional<std::int64_t> container,
                                               WallTime until, int limit);
  // Decisions of these containers, with their outcomes, newest first.
  Result<std::vector<JournalEntry>> entries(const std::vector<std::int64_t>& containers,
                                            WallTime until, int limit);
  // Decisions and outcomes of all containers, or of these, newest first. Precondition: `containers`
  // is ordered newest first.
  Result<std::vector<JournalEvent>> events(const EventSpan& span);
  Result<std::vector<JournalEvent>> events(const std::vector<std::int64_t>& containers,
                                           const EventSpan& span);
  Result<std::uint64_t> last_decision_id();
  Result<std::optional<WallTime>> last_written();
  Status end_open(WallTime now);  // Store::end_open_decisions()

  // Deletes the oldest rows until there are at most `rows` outcomes and half as many applied and
  // refused decisions. Returns the number of deleted rows.
  Result<std::int64_t> trim(std::int64_t rows);
  // Deletes the oldest `rows` refused decisions, or of the other tables if there are no refusals.
  Result<std::int64_t> drop_oldest(std::int64_t rows);

  // Rows that were left out, by time and decision_id, so that each counts once.
  using Damaged = std::set<std::pair<std::int64_t, std::int64_t>>;
  std::uint64_t damaged_rows() const { return damaged_.size(); }

 private:
  // The statements of one table.
  struct Rows {
    Statement add, read, read_container, span, drop, events, events_container;
    Result<std::int64_t> drop_oldest(std::int64_t keep, std::int64_t at_most);
  };

  Status add_outcomes(JournalEntry& entry);
  Result<std::vector<JournalEvent>> events_of(std::optional<std::int64_t> container,
                                              const EventSpan& span);

  Rows decisions_, refusals_, outcomes_;
  Statement read_outcomes_of_, last_id_, last_written_, end_open_;
  Damaged damaged_;
};

// As in the kernel's files: "max 100000", "50000 100000", "max", "1073741824".
std::string to_text(const CpuMax& limit);
std::string to_text(const MemoryLimit& limit);

}  // namespace cgphase
