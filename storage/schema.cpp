#include "storage/schema.h"

#include <algorithm>

#include "base/text.h"
#include "storage/journal.h"
#include "storage/sample_history.h"

namespace cgphase {
namespace {

// Names and labels are stored as escape_name() prints them, so that a terminal may print them.
constexpr const char* kTables = R"sql(
CREATE TABLE container (
  container INTEGER PRIMARY KEY,
  boot_id TEXT NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL,
  path TEXT NOT NULL, engine TEXT NOT NULL, engine_id TEXT NOT NULL,
  name TEXT NOT NULL, image TEXT NOT NULL, labels TEXT NOT NULL,
  systemd_unit INTEGER NOT NULL, hands_off TEXT NOT NULL,
  first_seen_ns INTEGER NOT NULL,
  UNIQUE (boot_id, device, inode));

CREATE TABLE learned (
  saved INTEGER PRIMARY KEY,
  image TEXT NOT NULL UNIQUE, crc32c INTEGER NOT NULL, json TEXT NOT NULL);
)sql";

constexpr const char* kBlockColumnsSql = R"sql(
  container INTEGER NOT NULL, first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL,
  point_count INTEGER NOT NULL, crc32c INTEGER NOT NULL, payload BLOB NOT NULL);
)sql";

std::string schema_sql() {
  std::string sql = kTables;
  for (const std::string table : kTierTables)
    sql += "CREATE TABLE " + table + " (block INTEGER PRIMARY KEY," + kBlockColumnsSql +
           "CREATE INDEX " + table + "_time ON " + table + " (container, first_ns, last_ns);";
  sql += journal_tables_sql();
  return sql + "PRAGMA application_id=" + std::to_string(kApplicationId) +
         "; PRAGMA user_version=" + std::to_string(kSchema);
}

// Stored data is rarely read again, so the cache needs room for one flush only. SQLite's default of
// 2 MB would fill up with pages of blocks.
constexpr int kCacheKib = 512;

// EXCLUSIVE comes before everything that reads the file. The index of the -wal is then in memory,
// not in a -shm file, and no second connection can open the file. INCREMENTAL lets a lowered cap
// shrink the file. FAST: distributions build SQLite so that it overwrites deleted data with zeros,
// which is a fifth of all writes at the cap.
Status set_session(Connection& connection) {
  if (Status first = connection.execute("PRAGMA locking_mode=EXCLUSIVE; PRAGMA page_size=" +
                                        std::to_string(kPageSizeBytes));
      !first)
    return first;
  // auto_vacuum would write to another program's database.
  const Result<std::int64_t> pages = connection.integer("PRAGMA page_count");
  if (!pages) return std::unexpected(pages.error());
  return connection.execute(
      std::string(*pages == 0 ? "PRAGMA auto_vacuum=INCREMENTAL;" : "") +
      "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA secure_delete=FAST;"
      "PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-" +
      std::to_string(kCacheKib) + "; BEGIN EXCLUSIVE; COMMIT");
}

Status set_bounds(Connection& connection, const PageBudget& budget) {
  return connection.execute(
      "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=" +
      std::to_string(budget.checkpoint_pages) +
      "; PRAGMA journal_size_limit=" + std::to_string(budget.wal_bytes) +
      "; PRAGMA max_page_count=" + std::to_string(budget.file_pages));
}

// Another program's database is neither written nor moved.
Status check_owner(Connection& connection, const std::string& name) {
  const Result<std::int64_t> owner = connection.integer("PRAGMA application_id");
  if (!owner) return std::unexpected(owner.error());
  if (*owner == kApplicationId) return check_schema(connection, name);
  const Result<std::int64_t> tables = connection.integer("SELECT count(*) FROM sqlite_schema");
  if (!tables) return std::unexpected(tables.error());
  if (*owner == 0 && *tables == 0) return {};
  return failure(ErrorKind::invalid,
                 name + ": a database, but not one of cgphase; it is unchanged: move it away");
}

Status create_tables(Connection& connection) {
  const Result<std::int64_t> version = connection.integer("PRAGMA user_version");
  if (!version) return std::unexpected(version.error());
  if (*version == kSchema) return {};
  Result<Transaction> transaction = Transaction::begin(connection);
  if (!transaction) return std::unexpected(transaction.error());
  if (Status created = connection.execute(schema_sql()); !created) return created;
  return transaction->commit();
}

}  // namespace

PageBudget page_budget(Bytes cap) {
  constexpr std::uint64_t kLargestWalBytes = 8 * kMiB;
  const std::uint64_t wal_bytes = std::min(kLargestWalBytes, cap.value / 4);
  PageBudget budget;
  budget.wal_bytes = static_cast<std::int64_t>(wal_bytes);
  budget.file_pages = static_cast<std::int64_t>((cap.value - wal_bytes) / kPageBytes);
  // Half of it: a checkpoint starts after the transaction that passes this mark.
  budget.checkpoint_pages = std::max<std::int64_t>(budget.wal_bytes / 2 / kPageSizeBytes, 1);
  return budget;
}

Status check_schema(Connection& connection, const std::string& name) {
  const Result<std::int64_t> version = connection.integer("PRAGMA user_version");
  if (!version) return std::unexpected(version.error());
  if (*version == kSchema) return {};
  const std::string text = name + ": schema " + std::to_string(*version) + " is ";
  connection.fault().outdated = *version >= 0 && *version < kSchema;
  if (connection.fault().outdated)
    return failure(ErrorKind::unsupported, text + "older than " + std::to_string(kSchema));
  return failure(ErrorKind::unsupported,
                 text + "newer than " + std::to_string(kSchema) +
                     ", the newest that this version of cgphase knows; the file is unchanged: "
                     "install the newer version or name another state_dir");
}

Status prepare_database(Connection& connection, const std::string& name, const PageBudget& budget) {
  if (Status set = set_session(connection); !set) {
    if (connection.fault().busy())
      return failure(ErrorKind::invalid, name +
                                             ": in use by another process (a second cgphased?); "
                                             "stop that one first");
    return set;
  }
  if (Status ours = check_owner(connection, name); !ours) return ours;
  if (Status set = set_bounds(connection, budget); !set) return set;
  return create_tables(connection);
}

}  // namespace cgphase
