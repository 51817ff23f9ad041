// An open database: it writes batches, flushes samples, and keeps the file below its cap.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/catalog.h"
#include "storage/journal.h"
#include "storage/sample_history.h"
#include "storage/schema.h"
#include "storage/sqlite.h"
#include "storage/store.h"

namespace cgphase {

// Owned by the Store and used by its thread.
class OpenFile {
 public:
  // Prepares all statements. `connection` is taken over only if this succeeds.
  static Result<std::unique_ptr<OpenFile>> prepare(const Store::Options& options,
                                                   Connection& connection);

  // As in Store.
  Status append(const std::vector<HistoryPoint>& points,
                const std::vector<JournalDecision>& decisions,
                const std::vector<JournalOutcome>& outcomes, std::optional<WallTime> time);
  Status flush();
  // Runs `work` in a transaction. At the cap it deletes the oldest rows and tries again.
  Status write(const std::function<Status()>& work);
  // After an open, because the cap may have been lowered. If it fails, a later flush tries again.
  void fit_cap();
  // Drops samples that are in memory only.
  void drop_samples();

  std::uint64_t damaged_count() const { return history.damaged_blocks() + journal.damaged_rows(); }
  std::uint64_t dropped_samples() const { return dropped_samples_; }
  const std::optional<std::string>& degraded() const { return degraded_; }
  int failures = 0;  // I/O errors since the last write without an error; counted by the Store

 private:
  OpenFile(const Store::Options& options, Connection& connection, Catalog& catalog,
           Journal& journal, SampleHistory& history);
  bool at_cap();
  Result<bool> near_cap();
  Result<std::int64_t> drop_oldest();
  Result<std::int64_t> free_space();
  Status make_room();
  void advance_clock(WallTime now);
  Status retire();
  Status sweep();
  Status flush_if_due();
  Result<std::int64_t> row_of(CgroupId id, WallTime time);
  Status write_journal(const std::vector<JournalDecision>& decisions,
                       const std::vector<JournalOutcome>& outcomes);

  const Store::Options options_;
  const PageBudget budget_;

 public:
  Connection connection;
  Catalog catalog;
  Journal journal;
  SampleHistory history;

 private:
  std::map<CgroupId, std::int64_t> rows_;  // of containers with points in memory
  std::optional<std::string> degraded_;
  std::uint64_t dropped_samples_ = 0;
  WallTime newest_;  // the last time passed in
  WallTime steady_since_;  // the last clock jump
  WallTime swept_;
  bool deleted_ = false;  // something, since the last sweep
};

}  // namespace cgphase
