// Decisions and their outcomes as rows that a person can read with the sqlite3 shell.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "storage/sqlite.h"
#include "storage/store.h"

namespace cgphase {

// Of an outcome and of a decision's writer; longer text is truncated.
inline constexpr std::size_t kMaxDetailBytes = 1024;
// Approximate size of a decision with its index entries; the journal is bounded in rows.
inline constexpr std::int64_t kJournalRowBytes = 512;

// Creates the tables of an empty file. Refusals have their own, so that many of them do not
// displace applied decisions.
std::string journal_tables_sql();

class Journal {
 public:
  static Result<Journal> prepare(Connection& connection);

  // Within the caller's transaction. `container` is the row of table container.
  Status add(std::int64_t container, const JournalDecision& decision);
  Status add(std::int64_t container, const JournalOutcome& outcome);

  // A row with an unknown word is left out of all results and counted.

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

  std::uint64_t damaged_rows() const { return damaged_.size(); }

 private:
  // The statements of one table.
  struct Rows {
    Statement add, events, events_container, span, drop;
    Result<std::int64_t> drop_oldest(std::int64_t keep, std::int64_t at_most);
  };

  template <class Entry>
  Status add_to(int table, std::int64_t container, const Entry& entry);
  Status read_rows(Statement& rows, int table, std::vector<JournalEvent>& events);
  // Of tables up to `last_table`, in the order of EventPlace.
  Result<std::vector<JournalEvent>> events_of(std::optional<std::int64_t> container,
                                              const EventSpan& span, int last_table);
  Result<std::vector<JournalEvent>> events(const std::vector<std::int64_t>& containers,
                                           const EventSpan& span, int last_table);

  std::array<Rows, 3> rows_;  // of decisions, refusals and outcomes
  Statement read_outcomes_of_, last_id_, last_written_, end_open_;
  std::set<EventPlace> damaged_;  // so that each row counts once
};

// As in the kernel's files: "max 100000", "50000 100000", "max", "1073741824".
std::string to_text(const CpuMax& limit);
std::string to_text(const MemoryLimit& limit);

}  // namespace cgphase
