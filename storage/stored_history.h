// The history in the database file of a daemon that has stopped: read, and never changed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/store.h"

namespace cgphase {

// Owned and used by one thread. While it is open no daemon can open the file. A file that a daemon
// left behind without having stopped well is read with its -wal; neither is changed.
class StoredHistory {
 public:
  // Of STATE_DIR/history.db. Errors: not_found (no such file), invalid (a daemon has it open, not a
  // database of ours), unsupported (another schema), denied, io.
  static Result<StoredHistory> open(const std::string& state_dir);
  StoredHistory(StoredHistory&&) noexcept;
  StoredHistory& operator=(StoredHistory&&) noexcept;
  ~StoredHistory();

  // As of Store. Damaged blocks are left out, and counted once each.
  std::uint64_t damaged_count() const;
  Result<std::vector<StoredRecord>> records(std::int64_t after, int limit);
  Result<std::vector<HistoryPoint>> history_of(std::int64_t record, WallTime from, WallTime until,
                                               int limit);
  Result<TablePage> table_page(const std::string& table, std::int64_t after);

  // As of Store, of a subject that has a record. Errors: unsupported too (the file is of a schema
  // that is not the newest).
  Result<std::optional<StoredRecord>> last_container(const std::string& text);
  Result<std::vector<StoredRecord>> runs(const Store::Subject& subject, WallTime from,
                                         WallTime until);
  Result<std::vector<JournalEntry>> entries(const Store::Subject& subject, WallTime until,
                                            int limit);
  Result<std::vector<JournalEvent>> events(const std::optional<Store::Subject>& subject,
                                           const EventSpan& span);

 private:
  class Impl;
  explicit StoredHistory(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cgphase
