#include "storage/store.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "storage/database_files.h"
#include "storage/open_file.h"

namespace cgphase {
namespace {

constexpr int kFailuresToDetach = 10;  // I/O errors in a row

}  // namespace

std::string sqlite_release() { return std::string("SQLite ") + sqlite3_libversion(); }

class Store::Impl {
 public:
  explicit Impl(Options options) : options_(std::move(options)) {}

  Status open();
  Status open_for_reading();
  // Runs `work` on the open file. If it finds the file corrupt, a new file begins.
  template <class Work>
  auto with_file(Work work) -> decltype(work(std::declval<OpenFile&>()));
  std::uint64_t size_bytes() const;
  std::uint64_t damaged_count() const {
    return damaged_before_ + (file_ ? file_->damaged_count() : 0);
  }
  std::uint64_t dropped_samples() const {
    return dropped_before_ + (file_ ? file_->dropped_samples() : 0);
  }

  bool read_only_ = false;
  bool detached_ = false;
  std::uint64_t reopen_count_ = 0;
  std::optional<std::string> quarantined_, degraded_, carry_failure_;

 private:
  Status take_over(Connection& connection);
  Status open_file();
  Status open_or_replace();
  Status reopen();
  void detach();
  Status replace(const std::string& reason);
  void carry_learned();
  Status copy_learned(const std::string& from);

  const Options options_;
  Fd lock_;  // of a file that is read without a -wal
  std::unique_ptr<OpenFile> file_;  // null while detached
  SqlFault open_fault_;
  bool ends_open_ = false;  // decisions of earlier runs get their end at the next open
  std::uint64_t damaged_before_ = 0, dropped_before_ = 0;  // in files that were closed
};

Status Store::Impl::take_over(Connection& connection) {
  Result<std::unique_ptr<OpenFile>> file = OpenFile::prepare(options_, connection);
  if (!file) return std::unexpected(file.error());
  file_ = *std::move(file);
  return {};
}

Status Store::Impl::open_file() {
  open_fault_ = {};
  Result<Connection> connection = Connection::open(options_.path);
  if (!connection) return std::unexpected(connection.error());
  Status opened = prepare_database(*connection, escape_name(options_.path),
                                   page_budget(options_.cap));
  if (opened) opened = take_over(*connection);
  detached_ = detached_ && !opened;
  if (opened) {
    carry_learned();
    return {};
  }
  open_fault_ = connection->fault();
  if (open_fault_.corrupt()) connection->keep_wal_on_close();
  return opened;
}

Status Store::Impl::open_or_replace() {
  const Status opened = open_file();
  if (!opened && open_fault_.corrupt()) return replace("corrupt");
  if (!opened && open_fault_.outdated) return replace("old");
  return opened;
}

// Every schema so far has the same table of learned state, which must survive a new schema: it is
// what runs of days learned, and the memory of OOM kills. A copy that failed is repeated at the
// next open, because the old file stays.
void Store::Impl::carry_learned() {
  carry_failure_.reset();
  const std::string old = newest_set_aside(options_.path, "old");
  if (old.empty()) return;
  const Result<std::int64_t> oom_memory = file_->connection.integer(
      "SELECT count(*) FROM learned WHERE image = '#oom'");
  if (oom_memory && *oom_memory > 0) return;
  if (Status copied = copy_learned(old); !copied)
    carry_failure_ = "the learned state in " + escape_name(old) + " could not be copied: " +
                     copied.error().text;
  file_->connection.fault() = {};
}

// The memory of OOM kills first: it must not be lost because the rest does not fit.
Status Store::Impl::copy_learned(const std::string& from) {
  std::string quoted;
  for (const char c : from) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  Connection& connection = file_->connection;
  if (Status attached = connection.execute("ATTACH '" + quoted + "' AS old"); !attached)
    return attached;
  const std::string copy = "INSERT OR IGNORE INTO learned (image, crc32c, json) "
                           "SELECT image, crc32c, json FROM old.learned";
  const Status memory = connection.execute(copy + " WHERE image = '#oom'");
  const Status rest = connection.execute(copy);
  const Status detached = connection.execute("DETACH old");
  if (!memory) return memory;
  if (!rest) return rest;
  return detached;
}

// The old file must be closed before a new one gets its name.
Status Store::Impl::replace(const std::string& reason) {
  if (file_) detach();
  if (options_.path != ":memory:") {
    Result<std::string> aside = set_aside(options_.path, reason);
    if (!aside) return std::unexpected(aside.error());
    quarantined_ = *aside;
    detached_ = false;  // the missing file is no sign of a missing file system
  }
  return open_file();
}

// Closes the file, so that its file system can be unmounted and repaired.
void Store::Impl::detach() {
  file_->drop_samples();
  damaged_before_ = damaged_count();
  dropped_before_ = dropped_samples();
  file_->connection.keep_wal_on_close();
  file_.reset();
  detached_ = true;
}

// A missing file is on a file system that is not mounted. A new file would be below its mount
// point.
Status Store::Impl::reopen() {
  if (detached_ && !file_exists(options_.path))
    return failure(ErrorKind::io,
                   escape_name(options_.path) + ": its file system failed and is not mounted yet");
  Status opened = open_or_replace();
  if (!opened && open_fault_.busy())
    return failure(ErrorKind::io, escape_name(options_.path) +
                                      ": in use by another process; retrying until it is free");
  if (opened) ++reopen_count_;
  // Before the file has decisions of this run.
  if (opened && std::exchange(ends_open_, false))
    static_cast<void>(file_->journal.end_open(*options_.wait_for_lock_since));
  return opened;
}

Status Store::Impl::open() {
  if (options_.cap < kMinimumCap)
    return failure(ErrorKind::invalid, "history: a cap of " + std::to_string(options_.cap.value) +
                                           " bytes is below the minimum of " +
                                           std::to_string(kMinimumCap.value));
  ::unlink((options_.path + ".reserve").c_str());  // of an earlier version
  const Status opened = open_or_replace();
  if (!opened && open_fault_.busy() && options_.wait_for_lock_since) {
    detached_ = ends_open_ = true;
    return {};
  }
  if (!opened) return opened;
  file_->fit_cap();
  return {};
}

// With a -wal SQLite itself has to lock the file.
Status Store::Impl::open_for_reading() {
  read_only_ = true;
  Result<Fd> locked = lock_for_reading(options_.path);
  if (!locked) return std::unexpected(locked.error());
  const bool has_log = file_bytes(options_.path + "-wal") > 0;
  if (!has_log) lock_ = std::move(*locked);
  else locked->reset();
  Result<Connection> connection = Connection::open_unchanged(options_.path, has_log);
  if (!connection) return std::unexpected(connection.error());
  const std::string name = escape_name(options_.path);
  Status opened = [&]() -> Status {
    const Result<std::int64_t> owner = connection->integer("PRAGMA application_id");
    if (!owner) return std::unexpected(owner.error());
    if (*owner != kApplicationId)
      return failure(ErrorKind::invalid, name + ": not a database of cgphase");
    return check_schema(*connection, name);
  }();
  const bool outdated = connection->fault().outdated;
  if (opened) opened = take_over(*connection);
  if (opened) return {};
  const SqlFault& fault = connection->fault();
  if (fault.busy())
    return failure(ErrorKind::invalid, name + ": in use by a running cgphased; leave out "
                                              "--state-dir to ask that one, or stop it first");
  if (fault.corrupt()) return failure(ErrorKind::invalid, name + ": damaged, or not a database");
  if (outdated)
    return failure(ErrorKind::unsupported,
                   opened.error().text + "; use the command that came with that daemon");
  return opened;
}

template <class Work>
auto Store::Impl::with_file(Work work) -> decltype(work(std::declval<OpenFile&>())) {
  if (!file_)
    if (Status opened = reopen(); !opened) return std::unexpected(opened.error());
  file_->connection.fault() = {};
  auto result = work(*file_);
  degraded_ = file_->degraded();
  if (result || read_only_) return result;
  const SqlFault fault = file_->connection.fault();
  if (fault.lost() && ++file_->failures >= kFailuresToDetach) detach();
  if (!fault.corrupt()) return result;
  Error error = result.error();
  const Status replaced = replace("corrupt");
  if (replaced) ++reopen_count_;
  error.text += replaced ? "; it was moved to " + escape_name(quarantined_.value_or("nowhere")) +
                               " and a new one begun"
                         : "; " + replaced.error().text;
  return std::unexpected(error);
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
  if (impl_ && !impl_->read_only_) static_cast<void>(flush());
}

Result<Store> Store::open(const Options& options) {
  auto impl = std::make_unique<Impl>(options);
  if (Status opened = impl->open(); !opened) return std::unexpected(opened.error());
  return Store(std::move(impl));
}

Result<Store> Store::open_for_reading(const std::string& path) {
  auto impl = std::make_unique<Impl>(Options{.path = path, .boot_id = {}});
  if (Status opened = impl->open_for_reading(); !opened) return std::unexpected(opened.error());
  return Store(std::move(impl));
}

Status Store::add_container(const ContainerInfo& info, WallTime first_seen) {
  return impl_->with_file([&](OpenFile& file) {
    return file.write([&] { return file.catalog.add(info, first_seen); });
  });
}

Status Store::append(const std::vector<HistoryPoint>& points,
                     const std::vector<JournalDecision>& decisions,
                     const std::vector<JournalOutcome>& outcomes, std::optional<WallTime> time) {
  return impl_->with_file(
      [&](OpenFile& file) { return file.append(points, decisions, outcomes, time); });
}

Status Store::flush() {
  return impl_->with_file([&](OpenFile& file) { return file.flush(); });
}

Result<nlohmann::json> Store::load_learned(const std::string& image) {
  return impl_->with_file([&](OpenFile& file) { return file.catalog.load_learned(image); });
}

Status Store::save_learned(const std::string& image, const nlohmann::json& learned) {
  return impl_->with_file([&](OpenFile& file) {
    return file.write([&] { return file.catalog.save_learned(image, learned); });
  });
}

bool Store::detached() const { return impl_->detached_; }
std::uint64_t Store::reopen_count() const { return impl_->reopen_count_; }
std::uint64_t Store::size_bytes() const { return impl_->size_bytes(); }
const std::optional<std::string>& Store::degraded() const { return impl_->degraded_; }
const std::optional<std::string>& Store::quarantined() const { return impl_->quarantined_; }
const std::optional<std::string>& Store::carry_failure() const { return impl_->carry_failure_; }
std::uint64_t Store::damaged_count() const { return impl_->damaged_count(); }
std::uint64_t Store::dropped_samples() const { return impl_->dropped_samples(); }

Result<std::vector<JournalEntry>> Store::entries(const Subject& subject, WallTime until,
                                                 int limit) {
  return impl_->with_file([&](OpenFile& file) -> Result<std::vector<JournalEntry>> {
    const Result<std::vector<std::int64_t>> rows = file.catalog.rows_of(subject);
    if (!rows) return std::unexpected(rows.error());
    return file.journal.entries(*rows, until, limit);
  });
}

Result<std::vector<JournalEvent>> Store::events(const std::optional<Subject>& subject,
                                                const EventSpan& span) {
  return impl_->with_file([&](OpenFile& file) -> Result<std::vector<JournalEvent>> {
    if (!subject) return file.journal.events(span);
    const Result<std::vector<std::int64_t>> rows = file.catalog.rows_of(*subject);
    if (!rows) return std::unexpected(rows.error());
    return file.journal.events(*rows, span);
  });
}

Result<std::vector<StoredRecord>> Store::runs(const Subject& subject, WallTime from,
                                              WallTime until) {
  return impl_->with_file([&](OpenFile& file) -> Result<std::vector<StoredRecord>> {
    const Result<std::vector<std::int64_t>> rows = file.catalog.rows_of(subject);
    if (!rows) return std::unexpected(rows.error());
    std::vector<StoredRecord> runs;
    for (const std::int64_t row : *rows) {
      const auto any = file.history.read({row, record_id(row)}, from, until, 1);
      if (!any) return std::unexpected(any.error());
      if (any->empty() && row != rows->front()) continue;
      auto record = file.catalog.records(row - 1, 1);
      if (!record) return record;
      std::ranges::move(*record, std::back_inserter(runs));
    }
    return runs;
  });
}

Result<std::optional<StoredRecord>> Store::last_container(const std::string& text) {
  return impl_->with_file([&](OpenFile& file) { return file.catalog.last(text); });
}

Result<std::vector<HistoryPoint>> Store::history(CgroupId container, WallTime from, WallTime until,
                                                 int limit) {
  return impl_->with_file([&](OpenFile& file) -> Result<std::vector<HistoryPoint>> {
    const Result<std::optional<std::int64_t>> row = file.catalog.find(container);
    if (!row) return std::unexpected(row.error());
    if (!*row) return std::vector<HistoryPoint>{};
    return file.history.read({**row, container}, from, until, limit);
  });
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

Result<std::optional<WallTime>> Store::last_written() {
  return impl_->with_file([](OpenFile& file) { return file.journal.last_written(); });
}

Status Store::end_open_decisions(WallTime now) {
  return impl_->with_file([&](OpenFile& file) { return file.journal.end_open(now); });
}

}  // namespace cgphase
