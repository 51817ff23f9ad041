// What a Store is made of; for storage/store.cpp, which writes, and storage/store_reading.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "storage/catalog.h"
#include "storage/disk_space.h"
#include "storage/journal.h"
#include "storage/row_map.h"
#include "storage/sample_history.h"
#include "storage/schema.h"
#include "storage/sqlite.h"
#include "storage/store.h"

namespace cgphase {

// Calls one after the other that the file system failed.
inline constexpr int kFailuresToLetGo = 10;

// Everything that hangs on one open file.
struct OpenFile {
  Connection connection;
  Catalog catalog;
  Journal journal;
  SampleHistory history;
};

class Store::Impl {
 public:
  explicit Impl(Options options);

  Status open();
  // Runs `work` on the open file. One found corrupt by it is quarantined and a new one begun.
  template <class Work>
  auto with_file(Work work) -> decltype(work(std::declval<OpenFile&>()));
  // Runs `work` in a transaction; at the cap, the oldest make room and it is run again.
  template <class Work>
  Status write(OpenFile& file, Work work);
  // The same for what is written on a full disk, too, as long as there is a reserve.
  template <class Work>
  Status write_at_all_costs(OpenFile& file, Work work);

  Status append(OpenFile& file, const std::vector<HistoryPoint>& points,
                const std::vector<JournalDecision>& decisions,
                const std::vector<JournalOutcome>& outcomes, std::optional<WallTime> time);
  Status flush(OpenFile& file);
  Result<Store> stand_in(std::string why) const;
  bool let_go() const { return let_go_; }
  std::uint64_t size_bytes() const;
  std::string held_back() const { return cap_holds_ ? cap_text() : space_.reason(); }

  const OpenFile* file() const { return file_.get(); }
  std::optional<std::string> quarantined_;
  std::optional<std::string> unreadable_;  // of a stand-in: why
  std::uint64_t dropped_samples_ = 0;
  std::uint64_t damaged_before_ = 0;  // counted in files that are quarantined now

 private:
  Status open_file();
  Status open_parts(Connection& connection);
  Status take_up(OpenFile& file);
  Status open_again();
  void close_lost_file();
  Status quarantine();
  bool at_cap(OpenFile& file) const;
  std::string cap_text() const;
  Status make_room(OpenFile& file);
  Status sweep(OpenFile& file);
  void pass_time(WallTime now);
  Status retire(OpenFile& file);
  Status flush_or_hold(OpenFile& file);
  void forget_rows(const OpenFile& file);
  Result<std::int64_t> yield_oldest(OpenFile& file);
  Result<bool> near_cap(OpenFile& file);
  Result<std::int64_t> drop_oldest(OpenFile& file);
  void shrink(OpenFile& file);
  Status find_rows(OpenFile& file, const std::vector<HistoryPoint>& points, RowMap& found);
  Result<std::int64_t> row_of(OpenFile& file, CgroupId id, WallTime time);
  Status write_journal(OpenFile& file, const std::vector<JournalDecision>& decisions,
                       const std::vector<JournalOutcome>& outcomes);

  Options options_;
  PageBudget budget_;
  DiskSpace space_;
  std::unique_ptr<OpenFile> file_;  // empty while a file cannot be made, or opened again
  SampleHistory::Memory kept_;      // of a file that was let go
  int failures_ = 0;
  bool let_go_ = false;
  bool ends_open_ = false;  // decisions of earlier runs, once the file is open
  bool cap_reached_ = false, cap_holds_ = false;  // by what may not go: last write(), last flush
  SqlFault open_fault_;
  RowMap rows_;  // of the containers that have points in memory
  std::vector<std::int64_t> point_rows_;  // of those being appended
  WallTime newest_;        // time that was told
  WallTime steady_since_;  // the last jump of it
  WallTime swept_;                        // since samples were too old
  std::int64_t dropped_since_sweep_ = 0;  // half a turn of the ring lies between two sweeps
};

template <class Work>
auto Store::Impl::with_file(Work work) -> decltype(work(std::declval<OpenFile&>())) {
  if (!file_)
    if (Status opened = open_again(); !opened) return std::unexpected(opened.error());
  file_->connection.fault() = {};
  auto result = work(*file_);
  if (result) return result;
  if (file_->connection.fault().lost() && ++failures_ >= kFailuresToLetGo) close_lost_file();
  if (!file_ || !file_->connection.fault().corrupt()) return result;
  Error error = result.error();
  const Status replaced = quarantine();
  error.text += replaced ? "; it was moved to " + escape_name(quarantined_.value_or("nowhere")) +
                               " and a new one begun"
                         : "; " + replaced.error().text;
  return std::unexpected(error);
}

}  // namespace cgphase
