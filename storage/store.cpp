#include "storage/store.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "storage/catalog.h"
#include "storage/database_files.h"
#include "storage/disk_space.h"
#include "storage/journal.h"
#include "storage/plain_tables.h"
#include "storage/row_map.h"
#include "storage/sample_history.h"
#include "storage/schema.h"
#include "storage/sqlite.h"

namespace cgphase {
namespace {

constexpr int kRetentionPercent = 90;       // of the cap's pages in use: the oldest must go
constexpr std::int64_t kLargestStep = 256;  // blocks, or rows of the journal, per deletion
constexpr std::chrono::hours kForgetAfter{1};
constexpr int kFailuresToLetGo = 10;  // calls one after the other that the file system failed
constexpr std::uint64_t kReserveShare = 64;  // of the cap, for decisions when the disk is full

// Everything that hangs on one open file.
struct OpenFile {
  Connection connection;
  Catalog catalog;
  Journal journal;
  SampleHistory history;
};

}  // namespace

class Store::Impl {
 public:
  explicit Impl(Options options)
      : options_(std::move(options)),
        budget_(page_budget(options_.cap)),
        space_(options_.path, options_.min_free, Bytes{options_.cap.value / kReserveShare}) {}

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
                const std::vector<JournalOutcome>& outcomes);
  Status flush(OpenFile& file);
  std::uint64_t size_bytes() const;
  std::string held_back() const { return cap_holds_ ? cap_text() : space_.reason(); }

  const OpenFile* file() const { return file_.get(); }
  std::optional<std::string> quarantined_;
  std::uint64_t damaged_before_ = 0;  // counted in files that are quarantined now

 private:
  Status open_file();
  Status open_parts(Connection& connection);
  Status take_up(OpenFile& file);
  Status open_again();
  void let_go();
  Status quarantine();
  bool at_cap(OpenFile& file) const;
  std::string cap_text() const;
  Status make_room(OpenFile& file);
  Status sweep(OpenFile& file);
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
  bool cap_reached_ = false, cap_holds_ = false;  // by what may not go: last write(), last flush
  SqlFault open_fault_;
  RowMap rows_;  // of the containers that have points in memory
  std::vector<std::int64_t> point_rows_;  // of those being appended
  WallTime newest_;
  std::int64_t dropped_since_sweep_ = 0;  // half a turn of the ring lies between two sweeps
};

Status Store::Impl::open_parts(Connection& connection) {
  if (Status ready = prepare_database(connection, escape_name(options_.path), budget_); !ready)
    return ready;
  Result<Catalog> catalog = Catalog::prepare(connection, options_.boot_id);
  if (!catalog) return std::unexpected(catalog.error());
  Result<Journal> journal = Journal::prepare(connection);
  if (!journal) return std::unexpected(journal.error());
  Result<SampleHistory> history = SampleHistory::prepare(connection);
  if (!history) return std::unexpected(history.error());
  file_ = std::make_unique<OpenFile>(std::move(connection), std::move(*catalog),
                                     std::move(*journal), std::move(*history));
  return {};
}

Status Store::Impl::open_file() {
  open_fault_ = {};
  Result<Connection> connection = Connection::open(options_.path);
  if (!connection) return std::unexpected(connection.error());
  Status opened = open_parts(*connection);
  if (opened) opened = take_up(*file_);
  if (opened) return {};
  Connection& failed = file_ ? file_->connection : *connection;
  open_fault_ = failed.fault();
  if (open_fault_.corrupt()) failed.keep_wal_on_close();
  file_.reset();
  return opened;
}

// What memory kept of a file that was let go comes back to containers that may have other rows now,
// if what was written last was lost.
Status Store::Impl::take_up(OpenFile& file) {
  RowMap found;
  SampleHistory::Rows rows;
  const Status adopted = write(file, [&]() -> Status {
    for (const auto& [id, row] : rows_) {
      const Result<std::int64_t> now = file.catalog.find_or_add(id, newest_);
      if (!now) return std::unexpected(now.error());
      found[id] = rows[row] = *now;
    }
    return file.history.adopt(file.connection, kept_, rows);
  });
  if (!adopted) return adopted;
  file.history.go_on(std::exchange(kept_, {}), rows);
  rows_ = std::move(found);
  let_go_ = false;
  return {};
}

// So that the file system below can be unmounted, repaired and mounted again.
void Store::Impl::let_go() {
  damaged_before_ += file_->history.damaged_blocks() + file_->journal.damaged_rows();
  file_->connection.keep_wal_on_close();
  kept_ = file_->history.leave();
  file_.reset();
  let_go_ = true;
}

// A file that was let go and is not there is on a file system that is not back yet: a new one would
// lie in its place.
Status Store::Impl::open_again() {
  if (let_go_ && !file_exists(options_.path))
    return failure(ErrorKind::io, escape_name(options_.path) +
                                      ": its file system failed, and it is not back");
  Status opened = open_file();
  return opened || !open_fault_.corrupt() ? opened : quarantine();
}

Status Store::Impl::open() {
  if (options_.cap < kMinimumCap)
    return failure(ErrorKind::invalid, "history: a cap of " + std::to_string(options_.cap.value) +
                                           " bytes is below the smallest, " +
                                           std::to_string(kMinimumCap.value));
  if (const std::string wrong = wrong_retention(options_.retention); !wrong.empty())
    return failure(ErrorKind::invalid, "history: " + wrong);
  Status opened = open_file();
  if (!opened && open_fault_.corrupt()) opened = quarantine();
  if (!opened) return opened;
  // The cap may have been lowered; one that cannot be met now is met at a later flush.
  static_cast<void>(make_room(*file_));
  shrink(*file_);
  static_cast<void>(space_.scarce());
  return {};
}

// The corrupt file must be closed before its name is given to a new one. Where it cannot be moved
// the file system has failed: SQLite says corrupt of a page that cannot be read, too.
Status Store::Impl::quarantine() {
  if (file_) let_go();
  if (options_.path != ":memory:") {
    Result<std::string> aside = set_aside(options_.path);
    if (!aside) return std::unexpected(aside.error());
    quarantined_ = *aside;
  }
  let_go_ = false;
  return open_file();
}

template <class Work>
auto Store::Impl::with_file(Work work) -> decltype(work(std::declval<OpenFile&>())) {
  if (!file_)
    if (Status opened = open_again(); !opened) return std::unexpected(opened.error());
  file_->connection.fault() = {};
  auto result = work(*file_);
  if (result) return result;
  if (file_->connection.fault().lost() && ++failures_ >= kFailuresToLetGo) let_go();
  if (!file_ || !file_->connection.fault().corrupt()) return result;
  Error error = result.error();
  const Status replaced = quarantine();
  error.text += replaced ? "; it was moved to " + escape_name(quarantined_.value_or("nowhere")) +
                               " and a new one begun"
                         : "; " + replaced.error().text;
  return std::unexpected(error);
}

template <class Work>
Status Store::Impl::write(OpenFile& file, Work work) {
  cap_reached_ = false;
  for (;;) {
    Status done = [&]() -> Status {
      Result<Transaction> transaction = Transaction::begin(file.connection);
      if (!transaction) return std::unexpected(transaction.error());
      if (Status worked = work(); !worked) return worked;
      return transaction->commit();
    }();
    if (done) failures_ = 0;
    if (done || !file.connection.fault().full() || !at_cap(file)) return done;
    file.connection.fault() = {};
    const Result<std::int64_t> dropped = drop_oldest(file);
    if (!dropped) return done;
    cap_reached_ = *dropped == 0;
    if (cap_reached_) return failure(ErrorKind::io, cap_text() + " (SQLITE_FULL)");
  }
}

template <class Work>
Status Store::Impl::write_at_all_costs(OpenFile& file, Work work) {
  const Status done = write(file, work);
  if (done || !file.connection.fault().full() || !space_.give_up_reserve()) return done;
  file.connection.fault() = {};
  return write(file, work);
}

// SQLITE_FULL has two causes. Where the disk itself is full, deleting history would help nobody.
bool Store::Impl::at_cap(OpenFile& file) const {
  if (options_.path == ":memory:") return true;
  struct statvfs disk {};
  if (::statvfs(options_.path.c_str(), &disk) != 0) return false;
  const std::uint64_t free_bytes = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  const Result<std::int64_t> pages = file.connection.integer("PRAGMA page_count");
  return free_bytes > static_cast<std::uint64_t>(budget_.wal_bytes) && pages &&
         *pages > budget_.file_pages / 2;
}

std::string Store::Impl::cap_text() const {
  return escape_name(options_.path) + ": store.cap (" + std::to_string(options_.cap.value) +
         " bytes) is reached by what is never dropped (containers, what was learned): raise it";
}

// Samples before the journal; one step of the ring. How many blocks or rows went.
Result<std::int64_t> Store::Impl::drop_oldest(OpenFile& file) {
  Result<Transaction> transaction = Transaction::begin(file.connection);
  if (!transaction) return std::unexpected(transaction.error());
  const std::int64_t step = std::clamp<std::int64_t>(budget_.file_pages / 64, 8, kLargestStep);
  Result<std::int64_t> dropped = file.history.drop_oldest(step);
  if (dropped && *dropped == 0) dropped = file.journal.drop_oldest(step);
  if (!dropped) return dropped;
  if (Status done = transaction->commit(); !done) return std::unexpected(done.error());
  dropped_since_sweep_ += *dropped;
  return dropped;
}

// Points that are as old as their tier may grow; at most kThinnedBlocks of each at a time.
Status Store::Impl::retire(OpenFile& file) {
  for (const Tier tier : {Tier::raw, Tier::medium, Tier::coarse}) {
    const Status done = write(file, [&]() -> Status {
      const Result<std::int64_t> gone = file.history.retire(tier, options_.retention, newest_);
      if (!gone) return std::unexpected(gone.error());
      dropped_since_sweep_ += *gone;
      return {};
    });
    if (!done) return done;
  }
  return {};
}

// Near the cap raw samples are thinned early where they are half of all blocks, medium ones where
// they are half of the rest; else the oldest go. How many blocks or rows went, to a tier or away.
Result<std::int64_t> Store::Impl::yield_oldest(OpenFile& file) {
  std::array<std::int64_t, kTiers> counts{};
  for (std::size_t tier = 0; tier < kTiers; ++tier) {
    const Result<std::int64_t> count = file.history.block_count(static_cast<Tier>(tier));
    if (!count) return count;
    counts[tier] = *count;
  }
  const auto [raw, medium, coarse] = counts;
  const bool much_raw = raw > 0 && raw >= medium + coarse;
  if (!much_raw && medium <= coarse) return drop_oldest(file);
  const Tier tier = much_raw ? Tier::raw : Tier::medium;
  const std::int64_t most = std::clamp<std::int64_t>(counts[static_cast<std::size_t>(tier)] / 4, 1,
                                                     kThinnedBlocks);
  // A large transaction is not to lie in the -wal on top of those before it.
  if (!file.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")) file.connection.fault() = {};
  std::int64_t thinned = 0;
  const Status done = write(file, [&]() -> Status {
    const Result<std::int64_t> gone = file.history.thin(tier, options_.retention, most);
    if (!gone) return std::unexpected(gone.error());
    thinned = *gone;
    return {};
  });
  if (!done) return std::unexpected(done.error());
  dropped_since_sweep_ += thinned;
  return thinned;
}

Result<bool> Store::Impl::near_cap(OpenFile& file) {
  const Result<std::int64_t> pages = file.connection.integer("PRAGMA page_count");
  if (!pages) return std::unexpected(pages.error());
  const Result<std::int64_t> spare = file.connection.integer("PRAGMA freelist_count");
  if (!spare) return std::unexpected(spare.error());
  return (*pages - *spare) * 100 >= budget_.file_pages * kRetentionPercent;
}

// A container that was named and not yet sampled is younger than kForgetAfter.
Status Store::Impl::sweep(OpenFile& file) {
  const auto holds = [&](std::int64_t container) { return file.history.holds(container); };
  return write(file, [&] { return file.catalog.drop_forgotten(newest_ - kForgetAfter, holds); });
}

Status Store::Impl::make_room(OpenFile& file) {
  for (;;) {
    const Result<bool> near = near_cap(file);
    if (!near) return std::unexpected(near.error());
    if (!*near) return {};
    const Result<std::int64_t> dropped = yield_oldest(file);
    if (!dropped) return std::unexpected(dropped.error());
    if (*dropped != 0 && dropped_since_sweep_ < budget_.file_pages / 2) continue;
    dropped_since_sweep_ = 0;
    if (newest_ > WallTime())
      if (Status swept = sweep(file); !swept) return swept;
    if (*dropped == 0) return {};
  }
}

// After the cap was lowered. SQLite lets no max_page_count be less than the pages there are, so it
// is set again; where this fails the file stays as large as it is, and is tried at the next open.
void Store::Impl::shrink(OpenFile& file) {
  const Result<std::int64_t> pages = file.connection.integer("PRAGMA page_count");
  if (!pages || *pages <= budget_.file_pages) return;
  static_cast<void>(file.connection.execute(
      "PRAGMA incremental_vacuum(" + std::to_string(*pages - budget_.file_pages) +
      "); PRAGMA wal_checkpoint(TRUNCATE); PRAGMA max_page_count=" +
      std::to_string(budget_.file_pages)));
}

Result<std::int64_t> Store::Impl::row_of(OpenFile& file, CgroupId id, WallTime time) {
  if (const auto known = rows_.find(id); known != rows_.end()) return known->second;
  return file.catalog.find_or_add(id, time);
}

Status Store::Impl::find_rows(OpenFile& file, const std::vector<HistoryPoint>& points,
                              RowMap& found) {
  found.clear();  // of an attempt before this one
  for (const HistoryPoint& point : points) {
    const Result<std::int64_t> row = row_of(file, point.sample.id, point.time);
    if (!row) return std::unexpected(row.error());
    found[point.sample.id] = *row;
  }
  return {};
}

Status Store::Impl::write_journal(OpenFile& file, const std::vector<JournalDecision>& decisions,
                                  const std::vector<JournalOutcome>& outcomes) {
  for (const JournalDecision& decision : decisions) {
    const Result<std::int64_t> row = row_of(file, decision.decision.container, decision.time);
    if (!row) return std::unexpected(row.error());
    if (Status added = file.journal.add(*row, decision); !added) return added;
  }
  for (const JournalOutcome& outcome : outcomes) {
    const Result<std::int64_t> row = row_of(file, outcome.outcome.container, outcome.time);
    if (!row) return std::unexpected(row.error());
    if (Status added = file.journal.add(*row, outcome); !added) return added;
  }
  return {};
}

Status Store::Impl::flush(OpenFile& file) {
  const std::int64_t journal_rows = budget_.file_pages * kPageSizeBytes / 2 / kJournalRowBytes;
  const Status flushed = write(file, [&]() -> Status {
    const Result<std::int64_t> trimmed = file.journal.trim(journal_rows);
    if (!trimmed) return std::unexpected(trimmed.error());
    return file.history.flush();
  });
  if (!flushed) return flushed;
  file.history.flushed();
  forget_rows(file);
  if (Status retired = retire(file); !retired) return retired;
  return make_room(file);
}

void Store::Impl::forget_rows(const OpenFile& file) {
  std::erase_if(rows_, [&](const auto& known) { return !file.history.holds(known.second); });
}

// At a cap that nothing can be dropped from samples wait, too: room may come when containers end.
// A disk that fills up between the look and the write is as one that was found full. Nothing of the
// flush is in the file then, and all of it still in memory.
Status Store::Impl::flush_or_hold(OpenFile& file) {
  cap_holds_ = false;
  if (!space_.scarce()) {
    const Status flushed = flush(file);
    if (flushed || (!cap_reached_ && !file.connection.fault().full())) return flushed;
    cap_holds_ = cap_reached_;
    if (!cap_holds_) space_.found_full();
    if (!cap_holds_ && !space_.holding()) return flushed;
    file.connection.fault() = {};
  }
  file.history.keep_in_memory();
  forget_rows(file);
  return {};
}

// What memory holds goes first, so that a call that fails has taken nothing of its own. A tick with
// nothing but samples of known containers does not touch the file.
Status Store::Impl::append(OpenFile& file, const std::vector<HistoryPoint>& points,
                           const std::vector<JournalDecision>& decisions,
                           const std::vector<JournalOutcome>& outcomes) {
  for (const HistoryPoint& point : points) newest_ = point.time;
  if (!points.empty() && file.history.flush_due(points.back().time))
    if (Status flushed = flush_or_hold(file); !flushed) return flushed;
  if (!find_known_rows(rows_, points, point_rows_) || !decisions.empty() || !outcomes.empty()) {
    RowMap found;
    const Status written = write_at_all_costs(file, [&]() -> Status {
      if (Status rows = find_rows(file, points, found); !rows) return rows;
      return write_journal(file, decisions, outcomes);
    });
    if (!written) return written;
    rows_.merge(found);
    CHECK_INVARIANT(find_known_rows(rows_, points, point_rows_));
  }
  file.history.add(point_rows_, points);
  return {};
}

std::uint64_t Store::Impl::size_bytes() const {
  if (options_.path != ":memory:")
    return file_bytes(options_.path) + file_bytes(options_.path + "-wal");
  if (!file_) return 0;
  const Result<std::int64_t> pages = file_->connection.integer("PRAGMA page_count");
  return static_cast<std::uint64_t>(pages.value_or(0) * kPageSizeBytes);
}

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::Store(Store&&) noexcept = default;

Store& Store::operator=(Store&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

Store::~Store() {
  if (impl_) static_cast<void>(flush());
}

Result<Store> Store::open(const Options& options) {
  auto impl = std::make_unique<Impl>(options);
  if (Status opened = impl->open(); !opened) return std::unexpected(opened.error());
  return Store(std::move(impl));
}

Status Store::add_container(const ContainerInfo& info, WallTime first_seen) {
  return impl_->with_file([&](OpenFile& file) {
    return impl_->write_at_all_costs(file, [&] { return file.catalog.add(info, first_seen); });
  });
}

Status Store::append(const std::vector<HistoryPoint>& points,
                     const std::vector<JournalDecision>& decisions,
                     const std::vector<JournalOutcome>& outcomes) {
  return impl_->with_file(
      [&](OpenFile& file) { return impl_->append(file, points, decisions, outcomes); });
}

Status Store::flush() {
  return impl_->with_file([&](OpenFile& file) { return impl_->flush(file); });
}

Result<nlohmann::json> Store::load_learned(const std::string& image) {
  return impl_->with_file([&](OpenFile& file) { return file.catalog.load_learned(image); });
}

Status Store::save_learned(const std::string& image, const nlohmann::json& learned) {
  return impl_->with_file([&](OpenFile& file) {
    return impl_->write(file, [&] { return file.catalog.save_learned(image, learned); });
  });
}

namespace {

// Reads rows of one container, or of all; a container that is not known has none.
template <class Entry, class Read>
Result<std::vector<Entry>> read_of(OpenFile& file, std::optional<CgroupId> container, Read read) {
  if (!container) return read(std::nullopt);
  const Result<std::optional<std::int64_t>> row = file.catalog.find(*container);
  if (!row) return std::unexpected(row.error());
  if (!*row) return std::vector<Entry>{};
  return read(*row);
}

}  // namespace

Result<std::vector<JournalDecision>> Store::decisions(std::optional<CgroupId> container,
                                                      WallTime until, int limit) {
  return impl_->with_file([&](OpenFile& file) {
    return read_of<JournalDecision>(file, container, [&](std::optional<std::int64_t> row) {
      return file.journal.decisions(row, until, limit);
    });
  });
}

Result<std::vector<JournalOutcome>> Store::outcomes(std::optional<CgroupId> container,
                                                    WallTime until, int limit) {
  return impl_->with_file([&](OpenFile& file) {
    return read_of<JournalOutcome>(file, container, [&](std::optional<std::int64_t> row) {
      return file.journal.outcomes(row, until, limit);
    });
  });
}

Result<std::vector<JournalEntry>> Store::entries(const Subject& subject, WallTime until,
                                                 int limit) {
  return impl_->with_file([&](OpenFile& file) -> Result<std::vector<JournalEntry>> {
    const Result<std::vector<std::int64_t>> rows = file.catalog.rows_of(subject);
    if (!rows) return std::unexpected(rows.error());
    return file.journal.entries(*rows, until, limit);
  });
}

Result<std::optional<StoredRecord>> Store::last_container(const std::string& text) {
  return impl_->with_file([&](OpenFile& file) { return file.catalog.last(text); });
}

Result<std::vector<HistoryPoint>> Store::history(CgroupId container, WallTime from, WallTime until,
                                                 int limit) {
  return impl_->with_file([&](OpenFile& file) {
    return read_of<HistoryPoint>(file, container, [&](std::optional<std::int64_t> row) {
      return file.history.read({*row, container}, from, until, limit);
    });
  });
}

Result<std::vector<StoredContainer>> Store::containers() {
  return impl_->with_file([](OpenFile& file) { return file.catalog.list(); });
}

Result<std::vector<StoredRecord>> Store::records(std::int64_t after, int limit) {
  return impl_->with_file([&](OpenFile& file) { return file.catalog.records(after, limit); });
}

Result<std::vector<HistoryPoint>> Store::history_of(std::int64_t record, WallTime from,
                                                    WallTime until, int limit) {
  return impl_->with_file([&](OpenFile& file) {
    return file.history.read({record, record_id(record)}, from, until, limit);
  });
}

Result<TablePage> Store::table_page(const std::string& table, std::int64_t after) {
  return impl_->with_file(
      [&](OpenFile& file) { return read_table_page(file.connection, table, after); });
}

Result<std::uint64_t> Store::last_decision_id() {
  return impl_->with_file([](OpenFile& file) { return file.journal.last_decision_id(); });
}

std::uint64_t Store::size_bytes() const { return impl_->size_bytes(); }

std::optional<std::string> Store::held_back() const {
  std::string reason = impl_->held_back();
  if (reason.empty()) return std::nullopt;
  return reason;
}

const std::optional<std::string>& Store::quarantined() const { return impl_->quarantined_; }

std::uint64_t Store::damaged_count() const {
  const OpenFile* file = impl_->file();
  if (file == nullptr) return impl_->damaged_before_;
  return impl_->damaged_before_ + file->history.damaged_blocks() + file->journal.damaged_rows();
}

}  // namespace cgphase
