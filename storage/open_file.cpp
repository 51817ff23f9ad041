#include "storage/open_file.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/text.h"
#include "storage/database_files.h"

namespace cgphase {
namespace {

constexpr int kRetentionPercent = 90;             // of the cap's pages; above it, space is freed
constexpr std::int64_t kLargestStep = 256;        // blocks, or rows of the journal, per deletion
constexpr std::chrono::hours kSweepInterval{1};   // between two deletions of unused containers
constexpr std::chrono::minutes kClockJump{5};     // a longer step from tick to tick is a jump
constexpr std::chrono::hours kSteadyFor{1};       // without a jump, before ages count

}  // namespace

OpenFile::OpenFile(const Store::Options& options, Connection& opened, Catalog& catalog_,
                   Journal& journal_, SampleHistory& history_)
    : options_(options),
      budget_(page_budget(options.cap)),
      connection(std::move(opened)),
      catalog(std::move(catalog_)),
      journal(std::move(journal_)),
      history(std::move(history_)) {}

Result<std::unique_ptr<OpenFile>> OpenFile::prepare(const Store::Options& options,
                                                    Connection& connection) {
  Result<Catalog> catalog = Catalog::prepare(connection, options.boot_id);
  if (!catalog) return std::unexpected(catalog.error());
  Result<Journal> journal = Journal::prepare(connection);
  if (!journal) return std::unexpected(journal.error());
  Result<SampleHistory> history = SampleHistory::prepare(connection);
  if (!history) return std::unexpected(history.error());
  return std::unique_ptr<OpenFile>(
      new OpenFile(options, connection, *catalog, *journal, *history));
}

Status OpenFile::write(const std::function<Status()>& work) {
  for (;;) {
    Status done = [&]() -> Status {
      Result<Transaction> transaction = Transaction::begin(connection);
      if (!transaction) return std::unexpected(transaction.error());
      if (Status worked = work(); !worked) return worked;
      return transaction->commit();
    }();
    if (done) failures = 0;
    if (done || !connection.fault().full() || !at_cap()) return done;
    const SqlFault full = std::exchange(connection.fault(), {});
    const Result<std::int64_t> dropped = drop_oldest();
    if (dropped && *dropped > 0) continue;
    connection.fault() = full;
    if (!dropped) return done;
    return failure(ErrorKind::io,
                   escape_name(options_.path) + ": containers and learned statistics reach " +
                       "store.cap (" + std::to_string(options_.cap.value) +
                       " bytes): raise it (SQLITE_FULL)");
  }
}

// SQLITE_FULL has two causes. If the disk is full, deleting history does not help.
bool OpenFile::at_cap() {
  const Result<std::int64_t> pages = connection.integer("PRAGMA page_count");
  const Bytes needed{static_cast<std::uint64_t>(budget_.wal_bytes)};
  return pages && *pages > budget_.file_pages / 2 && disk_problem(options_.path, needed).empty();
}

// Samples before the journal. Returns the number of deleted blocks or rows.
Result<std::int64_t> OpenFile::drop_oldest() {
  Result<Transaction> transaction = Transaction::begin(connection);
  if (!transaction) return std::unexpected(transaction.error());
  const std::int64_t step = std::clamp<std::int64_t>(budget_.file_pages / 64, 8, kLargestStep);
  Result<std::int64_t> dropped = 0;
  for (const Tier tier : {Tier::coarse, Tier::medium, Tier::raw})
    if (dropped && *dropped == 0) dropped = history.drop_oldest(tier, step);
  if (dropped && *dropped == 0) dropped = journal.drop_oldest(step);
  if (!dropped) return dropped;
  if (Status done = transaction->commit(); !done) return std::unexpected(done.error());
  deleted_ = deleted_ || *dropped > 0;
  return dropped;
}

Result<bool> OpenFile::near_cap() {
  const Result<std::int64_t> pages = connection.integer("PRAGMA page_count");
  if (!pages) return std::unexpected(pages.error());
  const Result<std::int64_t> spare = connection.integer("PRAGMA freelist_count");
  if (!spare) return std::unexpected(spare.error());
  return (*pages - *spare) * 100 >= budget_.file_pages * kRetentionPercent;
}

// The tier with the most blocks makes room: raw and medium blocks are thinned early, coarse ones
// are deleted. Returns the number of removed blocks or rows.
Result<std::int64_t> OpenFile::free_space() {
  std::array<std::int64_t, kTiers> counts{};
  for (std::size_t tier = 0; tier < kTiers; ++tier) {
    const Result<std::int64_t> count = history.block_count(static_cast<Tier>(tier));
    if (!count) return count;
    counts[tier] = *count;
  }
  const auto largest = std::ranges::max_element(counts);
  const auto tier = static_cast<Tier>(largest - counts.begin());
  if (tier == Tier::coarse || *largest == 0) return drop_oldest();
  // A checkpoint first, because a large transaction adds to what is in the -wal.
  if (!connection.execute("PRAGMA wal_checkpoint(PASSIVE)")) connection.fault() = {};
  std::int64_t thinned = 0;
  const Status done = write([&]() -> Status {
    const Result<std::int64_t> removed =
        history.thin(tier, std::clamp<std::int64_t>(*largest / 4, 1, kThinnedBlocks));
    thinned = removed.value_or(0);
    return removed ? Status() : std::unexpected(removed.error());
  });
  if (!done) return std::unexpected(done.error());
  deleted_ = true;
  return thinned;
}

Status OpenFile::make_room() {
  for (;;) {
    const Result<bool> near = near_cap();
    if (!near) return std::unexpected(near.error());
    if (!*near) return {};
    const Result<std::int64_t> removed = free_space();
    if (!removed) return std::unexpected(removed.error());
    if (*removed == 0) return sweep();
  }
}

// SQLite keeps max_page_count at or above the page count, so it is set again.
void OpenFile::fit_cap() {
  static_cast<void>(make_room());
  const Result<std::int64_t> pages = connection.integer("PRAGMA page_count");
  if (!pages || *pages <= budget_.file_pages) return;
  static_cast<void>(connection.execute(
      "PRAGMA incremental_vacuum(" + std::to_string(*pages - budget_.file_pages) +
      "); PRAGMA wal_checkpoint(TRUNCATE); PRAGMA max_page_count=" +
      std::to_string(budget_.file_pages)));
}

void OpenFile::advance_clock(WallTime now) {
  if (std::chrono::abs(now - newest_) > kClockJump) steady_since_ = now;
  newest_ = now;
}

// After a jump the clock may be wrong, and deleted samples do not come back.
Status OpenFile::retire() {
  if (newest_ - steady_since_ < kSteadyFor) return {};
  for (const Tier tier : {Tier::raw, Tier::medium, Tier::coarse}) {
    const Status done = write([&]() -> Status {
      const Result<std::int64_t> removed = history.retire(tier, options_.tier_ages, newest_);
      if (!removed) return std::unexpected(removed.error());
      deleted_ = deleted_ || *removed > 0;
      return {};
    });
    if (!done) return done;
  }
  return {};
}

// Deletes containers without data. A new container may have no samples yet.
Status OpenFile::sweep() {
  if (newest_ == WallTime()) return {};
  deleted_ = false;
  swept_ = newest_;
  return write([&] { return catalog.drop_unused(newest_ - kSweepInterval); });
}

Status OpenFile::flush() {
  const std::int64_t journal_rows = budget_.file_pages * kPageSizeBytes / 2 / kJournalRowBytes;
  const Status flushed = write([&]() -> Status {
    const Result<std::int64_t> trimmed = journal.trim(journal_rows);
    if (!trimmed) return std::unexpected(trimmed.error());
    return history.flush();
  });
  if (!flushed) return flushed;
  history.flushed();
  rows_.clear();
  if (Status retired = retire(); !retired) return retired;
  if (Status made = make_room(); !made) return made;
  if (!deleted_ || std::chrono::abs(newest_ - swept_) < kSweepInterval) return {};
  return sweep();
}

void OpenFile::drop_samples() {
  dropped_samples_ += history.forget_unflushed();
  rows_.clear();
}

// Samples without space are dropped, so that the journal and newer samples go on. The disk is
// checked each time, because a read-only one lets some writes pass for a while.
Status OpenFile::flush_if_due() {
  std::string problem = disk_problem(options_.path, options_.min_free);
  if (problem.empty()) {
    if (!degraded_ && !history.flush_due(newest_)) return {};
    degraded_.reset();
    const Status flushed = flush();
    if (flushed || !connection.fault().full()) return flushed;
    problem = flushed.error().text;
    connection.fault() = {};
  }
  // Housekeeping after the flush may fail for lack of space: then the samples are already stored.
  if (history.unflushed() == 0) {
    degraded_ = "old samples cannot be removed: " + problem;
    return {};
  }
  degraded_ = "samples are dropped: " + problem;
  drop_samples();
  return {};
}

Result<std::int64_t> OpenFile::row_of(CgroupId id, WallTime time) {
  if (const auto known = rows_.find(id); known != rows_.end()) return known->second;
  return catalog.find_or_add(id, time);
}

Status OpenFile::write_journal(const std::vector<JournalDecision>& decisions,
                                  const std::vector<JournalOutcome>& outcomes) {
  for (const JournalDecision& decision : decisions) {
    const Result<std::int64_t> row = row_of(decision.decision.container, decision.time);
    if (!row) return std::unexpected(row.error());
    if (Status added = journal.add(*row, decision); !added) return added;
  }
  for (const JournalOutcome& outcome : outcomes) {
    const Result<std::int64_t> row = row_of(outcome.outcome.container, outcome.time);
    if (!row) return std::unexpected(row.error());
    if (Status added = journal.add(*row, outcome); !added) return added;
  }
  return {};
}

// Memory is flushed first, so that a failing call has stored nothing of its own. A tick with only
// samples of known containers does not touch the file.
Status OpenFile::append(const std::vector<HistoryPoint>& points,
                           const std::vector<JournalDecision>& decisions,
                           const std::vector<JournalOutcome>& outcomes,
                           std::optional<WallTime> time) {
  for (const HistoryPoint& point : points) advance_clock(point.time);
  if (time) advance_clock(*time);
  if (time || !points.empty())
    if (Status flushed = flush_if_due(); !flushed) return flushed;
  std::vector<const HistoryPoint*> unknown;
  for (const HistoryPoint& point : points)
    if (!rows_.contains(point.sample.id)) unknown.push_back(&point);
  if (!unknown.empty() || !decisions.empty() || !outcomes.empty()) {
    std::map<CgroupId, std::int64_t> found;
    const Status written = write([&]() -> Status {
      found.clear();  // of an earlier attempt
      for (const HistoryPoint* point : unknown) {
        const Result<std::int64_t> row = row_of(point->sample.id, point->time);
        if (!row) return std::unexpected(row.error());
        found[point->sample.id] = *row;
      }
      return write_journal(decisions, outcomes);
    });
    if (!written) return written;
    rows_.merge(found);
  }
  for (const HistoryPoint& point : points) history.add(rows_.at(point.sample.id), point);
  return {};
}

}  // namespace cgphase
