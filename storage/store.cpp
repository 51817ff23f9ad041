#include "storage/store.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "storage/database_files.h"
#include "storage/store_impl.h"

namespace cgphase {
namespace {

constexpr int kRetentionPercent = 90;       // of the cap's pages in use: the oldest must go
constexpr std::int64_t kLargestStep = 256;  // blocks, or rows of the journal, per deletion
constexpr std::chrono::hours kForgetAfter{1};
constexpr std::chrono::minutes kClockJump{5};  // more from one tick to the next is one
constexpr std::chrono::hours kSteadyFor{1};    // without one, before ages are believed
constexpr std::uint64_t kReserveShare = 64;    // of the cap, for decisions when the disk is full

}  // namespace

std::string sqlite_release() { return std::string("SQLite ") + sqlite3_libversion(); }

Store::Impl::Impl(Options options)
    : options_(std::move(options)),
      budget_(page_budget(options_.cap)),
      space_(options_.path, options_.min_free, Bytes{options_.cap.value / kReserveShare}) {}

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
// if what was written last was lost. On a full disk a file of which memory kept nothing is taken as
// it is: its open blocks wait where they are for the flush that finds room.
Status Store::Impl::take_up(OpenFile& file) {
  RowMap found;
  SampleHistory::Rows rows;
  const Status adopted = write_at_all_costs(file, [&]() -> Status {
    for (const auto& [id, row] : rows_) {
      const Result<std::int64_t> now = file.catalog.find_or_add(id, newest_);
      if (!now) return std::unexpected(now.error());
      found[id] = rows[row] = *now;
    }
    return file.history.adopt(file.connection, kept_, rows);
  });
  if (adopted) {
    file.history.go_on(std::exchange(kept_, {}), rows);
  } else {
    if (!rows_.empty() || !file.connection.fault().full()) return adopted;
    file.connection.fault() = {};
    space_.found_full();
  }
  rows_ = std::move(found);
  let_go_ = false;
  return {};
}

// So that the file system below can be unmounted, repaired and mounted again.
void Store::Impl::close_lost_file() {
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
  if (!opened && open_fault_.corrupt()) opened = quarantine();
  if (!opened && open_fault_.busy())
    return failure(ErrorKind::io, escape_name(options_.path) +
                                      ": in use by another process; tried again until it is free");
  // Before anything of this run is in it.
  if (opened && std::exchange(ends_open_, false))
    static_cast<void>(file_->journal.end_open(*options_.wait_for_lock_since));
  return opened;
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
  if (!opened && open_fault_.busy() && options_.wait_for_lock_since) {
    let_go_ = ends_open_ = true;
    return {};
  }
  if (!opened) return opened;
  // The cap may have been lowered; one that cannot be met now is met at a later flush.
  static_cast<void>(make_room(*file_));
  shrink(*file_);
  static_cast<void>(space_.scarce());
  return {};
}

// What the open file would be given back, in a database of its own.
Result<Store> Store::Impl::stand_in(std::string why) const {
  auto impl = std::make_unique<Impl>(
      Options{.path = ":memory:", .boot_id = options_.boot_id, .retention = options_.retention});
  impl->kept_ = kept_;
  impl->rows_ = rows_;
  impl->newest_ = newest_;
  impl->steady_since_ = steady_since_;
  if (Status opened = impl->open(); !opened) return std::unexpected(opened.error());
  impl->unreadable_ = std::move(why);
  return Store(std::move(impl));
}

// The corrupt file must be closed before its name is given to a new one. Where it cannot be moved
// the file system has failed: SQLite says corrupt of a page that cannot be read, too.
Status Store::Impl::quarantine() {
  if (file_) close_lost_file();
  if (options_.path != ":memory:") {
    Result<std::string> aside = set_aside(options_.path);
    if (!aside) return std::unexpected(aside.error());
    quarantined_ = *aside;
  }
  let_go_ = false;
  return open_file();
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

// A clock that was set may be wrong, and what goes for its age does not come back.
void Store::Impl::pass_time(WallTime now) {
  if (std::chrono::abs(now - newest_) > kClockJump) steady_since_ = now;
  newest_ = now;
}

// Points that are as old as their tier may grow; at most kThinnedBlocks of each at a time.
// With the last samples of a container may go what tells who it was.
Status Store::Impl::retire(OpenFile& file) {
  if (newest_ - steady_since_ < kSteadyFor) return {};
  bool too_old = false;
  for (const Tier tier : {Tier::raw, Tier::medium, Tier::coarse}) {
    const Status done = write(file, [&]() -> Status {
      const Result<std::int64_t> gone = file.history.retire(tier, options_.retention, newest_);
      if (!gone) return std::unexpected(gone.error());
      dropped_since_sweep_ += *gone;
      too_old = tier == Tier::coarse && *gone > 0;
      return {};
    });
    if (!done) return done;
  }
  if (!too_old || newest_ - swept_ < kForgetAfter) return {};
  swept_ = newest_;
  return sweep(file);
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
  dropped_samples_ += file.history.keep_in_memory(newest_);
  forget_rows(file);
  return {};
}

// What memory holds goes first, so that a call that fails has taken nothing of its own. A tick with
// nothing but samples of known containers does not touch the file, nor one without any.
Status Store::Impl::append(OpenFile& file, const std::vector<HistoryPoint>& points,
                           const std::vector<JournalDecision>& decisions,
                           const std::vector<JournalOutcome>& outcomes,
                           std::optional<WallTime> time) {
  for (const HistoryPoint& point : points) pass_time(point.time);
  if (time) pass_time(*time);
  if ((time || !points.empty()) && file.history.flush_due(newest_))
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
                     const std::vector<JournalOutcome>& outcomes, std::optional<WallTime> time) {
  return impl_->with_file(
      [&](OpenFile& file) { return impl_->append(file, points, decisions, outcomes, time); });
}

Status Store::open_again() {
  return impl_->with_file([](OpenFile&) { return Status{}; });
}

Result<Store> Store::stand_in(std::string why) const { return impl_->stand_in(std::move(why)); }

bool Store::let_go() const { return impl_->let_go(); }

Status Store::flush() {
  return impl_->with_file([&](OpenFile& file) { return impl_->flush(file); });
}

Status Store::save_learned(const std::string& image, const nlohmann::json& learned) {
  return impl_->with_file([&](OpenFile& file) {
    return impl_->write(file, [&] { return file.catalog.save_learned(image, learned); });
  });
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

std::uint64_t Store::dropped_samples() const { return impl_->dropped_samples_; }

}  // namespace cgphase
