#include "storage/stored_history.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <set>
#include <utility>

#include "base/fd.h"
#include "base/text.h"
#include "storage/block.h"
#include "storage/catalog.h"
#include "storage/journal.h"
#include "storage/oldest_points.h"
#include "storage/plain_tables.h"
#include "storage/recent_ring.h"
#include "storage/sample_history.h"
#include "storage/schema.h"

namespace cgphase {
namespace {

std::unexpected<Error> in_use(const std::string& path) {
  return failure(ErrorKind::invalid, escape_name(path) +
                                         ": in use by a running cgphased; leave --state-dir away "
                                         "to ask that one, or stop it first");
}

// The bytes of a database file that SQLite locks: whoever writes has them for himself.
Status lock_for_reading(const Fd& file, const std::string& path) {
  struct flock range {};
  range.l_type = F_RDLCK;
  range.l_whence = SEEK_SET;
  range.l_start = 0x40000002;
  range.l_len = 510;
  if (::fcntl(file.get(), F_OFD_SETLK, &range) == 0) return {};
  if (errno == EAGAIN || errno == EACCES) return in_use(path);
  return errno_failure("locking " + escape_name(path), errno);
}

bool has_log(const std::string& path) {
  struct stat log {};
  return ::stat((path + "-wal").c_str(), &log) == 0 && log.st_size > 0;
}

Status check_schema(Connection& connection, const std::string& path) {
  const Result<std::int64_t> owner = connection.integer("PRAGMA application_id");
  if (!owner) return std::unexpected(owner.error());
  if (*owner != kApplicationId)
    return failure(ErrorKind::invalid, escape_name(path) + ": not a database of cgphase");
  const Result<std::int64_t> version = connection.integer("PRAGMA user_version");
  if (!version) return std::unexpected(version.error());
  // What is read here is the same since the first.
  if (*version >= 1 && *version <= static_cast<std::int64_t>(schema_steps().size()))
    return {};
  return failure(ErrorKind::unsupported,
                 escape_name(path) + ": schema " + std::to_string(*version) + ", and this version "
                 "of cgphase reads 1 to " + std::to_string(schema_steps().size()) +
                     "; use the command that came with that daemon");
}

Result<bool> has_table(Connection& connection, const std::string& name) {
  const Result<std::int64_t> count = connection.integer(
      "SELECT count(*) FROM sqlite_schema WHERE type='table' AND name='" + name + "'");
  if (!count) return std::unexpected(count.error());
  return *count != 0;
}

}  // namespace

class StoredHistory::Impl {
 public:
  Status open(const std::string& path);
  Status prepare(const std::string& path);
  // The first time that it is asked for; its columns are those of the newest schema.
  Status prepare_journal();
  // Adds the points of one packed block; false of a damaged one.
  static bool select(std::int64_t record, std::string_view payload, OldestPoints& points);

  Fd lock;  // held as long as the file is read
  Connection connection;
  Statement records, blocks;
  std::optional<Catalog> catalog;
  std::optional<Journal> journal;
  std::vector<RecentBlock> recent;
  std::uint64_t damaged_recent = 0;
  std::set<std::pair<std::int64_t, std::int64_t>> damaged;  // blocks, by record and first time
};

// With a -wal SQLite has to take part in the locking, so it does that alone.
Status StoredHistory::Impl::open(const std::string& path) {
  Result<Fd> file = open_path(path, O_RDONLY | O_NOFOLLOW);
  if (!file) return std::unexpected(file.error());
  if (Status locked = lock_for_reading(*file, path); !locked) return locked;
  const bool with_log = has_log(path);
  lock = std::move(*file);
  if (with_log) lock.reset();
  Result<Connection> opened = Connection::open_unchanged(path, with_log);
  if (!opened) return std::unexpected(opened.error());
  connection = std::move(*opened);
  const Status ready = prepare(path);
  if (ready) return {};
  const SqlFault& fault = connection.fault();
  if (fault.busy()) return in_use(path);
  if (fault.corrupt())
    return failure(ErrorKind::invalid, escape_name(path) + ": damaged, or no database");
  return ready;
}

Status StoredHistory::Impl::prepare(const std::string& path) {
  if (Status known = check_schema(connection, path); !known) return known;
  std::string select;
  for (const std::string table : {"block", "tail", "medium", "coarse", "recent"}) {
    const Result<bool> there = has_table(connection, table);
    if (!there) return std::unexpected(there.error());
    if (!*there) continue;
    if (table == "recent") {
      Result<std::vector<RecentBlock>> read = read_recent(connection, damaged_recent);
      if (!read) return std::unexpected(read.error());
      recent = *std::move(read);
      continue;
    }
    select += (select.empty() ? "" : " UNION ALL ") +
              ("SELECT first_ns,last_ns,point_count,crc32c,payload FROM " + table) +
              " WHERE container = ?1 AND first_ns <= ?2 AND last_ns >= ?3";
  }
  const std::pair<Statement*, std::string> wanted[] = {{&records, kSelectRecords},
                                                       {&blocks, select + " ORDER BY first_ns"}};
  for (const auto& [statement, sql] : wanted) {
    Result<Statement> prepared = connection.prepare(sql);
    if (!prepared) return std::unexpected(prepared.error());
    *statement = std::move(*prepared);
  }
  return {};
}

Status StoredHistory::Impl::prepare_journal() {
  if (journal) return {};
  const Result<std::int64_t> version = connection.integer("PRAGMA user_version");
  if (!version) return std::unexpected(version.error());
  if (*version != static_cast<std::int64_t>(schema_steps().size()))
    return failure(ErrorKind::unsupported,
                   "the journal is of schema " + std::to_string(*version) +
                       "; it is renewed when a daemon of this version starts on it");
  Result<Catalog> named = Catalog::prepare(connection, "");
  if (!named) return std::unexpected(named.error());
  Result<Journal> told = Journal::prepare(connection);
  if (!told) return std::unexpected(told.error());
  catalog.emplace(*std::move(named));
  journal.emplace(*std::move(told));
  return {};
}

bool StoredHistory::Impl::select(std::int64_t record, std::string_view payload,
                                 OldestPoints& points) {
  Result<std::vector<HistoryPoint>> block = read_block(payload, record_id(record));
  if (block) points.add(*std::move(block));
  return block.has_value();
}

StoredHistory::StoredHistory(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StoredHistory::StoredHistory(StoredHistory&&) noexcept = default;
StoredHistory& StoredHistory::operator=(StoredHistory&&) noexcept = default;
StoredHistory::~StoredHistory() = default;

Result<StoredHistory> StoredHistory::open(const std::string& state_dir) {
  auto impl = std::make_unique<Impl>();
  if (Status opened = impl->open(state_dir + "/history.db"); !opened)
    return std::unexpected(opened.error());
  return StoredHistory(std::move(impl));
}

std::uint64_t StoredHistory::damaged_count() const {
  return impl_->damaged_recent + impl_->damaged.size() +
         (impl_->journal ? impl_->journal->damaged_rows() : 0);
}

Result<std::vector<StoredRecord>> StoredHistory::records(std::int64_t after, int limit) {
  return read_records(impl_->records, after, limit);
}

Result<std::optional<StoredRecord>> StoredHistory::last_container(const std::string& text) {
  if (Status ready = impl_->prepare_journal(); !ready) return std::unexpected(ready.error());
  return impl_->catalog->last(text);
}

Result<std::vector<StoredRecord>> StoredHistory::runs(const Store::Subject& subject, WallTime from,
                                                      WallTime until) {
  if (Status ready = impl_->prepare_journal(); !ready) return std::unexpected(ready.error());
  return runs_of(*impl_->catalog, subject, [&](std::int64_t row) -> Result<bool> {
    const auto any = history_of(row, from, until, 1);
    if (!any) return std::unexpected(any.error());
    return !any->empty();
  });
}

Result<std::vector<JournalEntry>> StoredHistory::entries(const Store::Subject& subject,
                                                         WallTime until, int limit) {
  if (Status ready = impl_->prepare_journal(); !ready) return std::unexpected(ready.error());
  const auto rows = impl_->catalog->rows_of(subject);
  if (!rows) return std::unexpected(rows.error());
  return impl_->journal->entries(*rows, until, limit);
}

Result<std::vector<JournalEvent>> StoredHistory::events(
    const std::optional<Store::Subject>& subject, const EventSpan& span) {
  if (Status ready = impl_->prepare_journal(); !ready) return std::unexpected(ready.error());
  if (!subject) return impl_->journal->events(span);
  const auto rows = impl_->catalog->rows_of(*subject);
  if (!rows) return std::unexpected(rows.error());
  return impl_->journal->events(*rows, span);
}

Result<TablePage> StoredHistory::table_page(const std::string& table, std::int64_t after) {
  return read_table_page(impl_->connection, table, after);
}

Result<std::vector<HistoryPoint>> StoredHistory::history_of(std::int64_t record, WallTime from,
                                                            WallTime until, int limit) {
  OldestPoints points(from, until, limit);
  impl_->blocks.begin(record, until.time_since_epoch().count(), from.time_since_epoch().count());
  for (;;) {
    const Statement& block = impl_->blocks;
    const Result<bool> row = impl_->blocks.next();
    if (!row) return std::unexpected(row.error());
    if (!*row || !points.takes(block.integer(0))) break;
    const std::string_view payload = block.blob(4);
    const bool sound = block_checksum(record, block.integer(0), block.integer(1), block.integer(2),
                                      payload) == block.integer(3);
    if (!sound || !Impl::select(record, payload, points))
      impl_->damaged.emplace(record, block.integer(0));
  }
  impl_->blocks.stop();
  for (const RecentBlock& block : impl_->recent)
    if (block.container == record && points.takes(block.first_ns) &&
        !Impl::select(record, block.payload, points))
      impl_->damaged.emplace(record, 0);
  return points.take();
}

}  // namespace cgphase
