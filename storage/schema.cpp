#include "storage/schema.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace cgphase {
namespace {

// Names and labels are stored as escape_name() prints them, so that a terminal may show them.
constexpr const char* kVersion1 = R"sql(
CREATE TABLE container (
  container INTEGER PRIMARY KEY,
  boot_id TEXT NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL,
  path TEXT NOT NULL, engine TEXT NOT NULL, engine_id TEXT NOT NULL,
  name TEXT NOT NULL, image TEXT NOT NULL, labels TEXT NOT NULL,
  systemd_unit INTEGER NOT NULL, hands_off TEXT NOT NULL,
  first_seen_ns INTEGER NOT NULL,
  UNIQUE (boot_id, device, inode));

CREATE TABLE block (
  block INTEGER PRIMARY KEY,
  container INTEGER NOT NULL, first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL,
  point_count INTEGER NOT NULL, crc32c INTEGER NOT NULL, payload BLOB NOT NULL);
CREATE INDEX block_time ON block (container, first_ns, last_ns);

CREATE TABLE tail (
  container INTEGER PRIMARY KEY,
  first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL,
  point_count INTEGER NOT NULL, crc32c INTEGER NOT NULL, payload BLOB NOT NULL);

CREATE TABLE decision (
  decision INTEGER PRIMARY KEY,
  container INTEGER NOT NULL, time_ns INTEGER NOT NULL,
  decision_id INTEGER NOT NULL, monotonic_ns INTEGER NOT NULL,
  resource TEXT NOT NULL, direction TEXT NOT NULL, reason TEXT NOT NULL, verdict TEXT NOT NULL,
  phase_state TEXT NOT NULL, phase_index INTEGER NOT NULL,
  phase_distance REAL, phase_margin REAL,
  usage REAL, statistic REAL, sample_count REAL,
  old_cpu_max TEXT, old_cpu_max_burst INTEGER, old_cpu_weight INTEGER,
  old_memory_max TEXT, old_memory_high TEXT, old_memory_low TEXT, old_memory_min TEXT,
  new_cpu_max TEXT, new_cpu_max_burst INTEGER, new_cpu_weight INTEGER,
  new_memory_max TEXT, new_memory_high TEXT, new_memory_low TEXT, new_memory_min TEXT);
CREATE INDEX decision_time ON decision (time_ns);
CREATE INDEX decision_container ON decision (container, time_ns);

CREATE TABLE outcome (
  outcome INTEGER PRIMARY KEY,
  container INTEGER NOT NULL, time_ns INTEGER NOT NULL,
  decision_id INTEGER NOT NULL, monotonic_ns INTEGER NOT NULL,
  kind TEXT NOT NULL, detail TEXT NOT NULL);
CREATE INDEX outcome_time ON outcome (time_ns);
CREATE INDEX outcome_container ON outcome (container, time_ns);

CREATE TABLE learned (
  saved INTEGER PRIMARY KEY,
  image TEXT NOT NULL UNIQUE, crc32c INTEGER NOT NULL, json TEXT NOT NULL);
)sql";

// As in `outcome`: text as escape_name() prints it. NULL where no writer is known.
constexpr const char* kVersion2 = "ALTER TABLE decision ADD COLUMN writer TEXT";

// What was decided and not written has a table of its own, so that much of it does not push out
// what was written; and each decision keeps the numbers that the rails knew.
constexpr const char* kVersion3 = R"sql(
ALTER TABLE decision ADD COLUMN fact_cpu_cores REAL;
ALTER TABLE decision ADD COLUMN fact_memory_need_bytes REAL;
ALTER TABLE decision ADD COLUMN fact_memory_peak_need_bytes REAL;
ALTER TABLE decision ADD COLUMN fact_memory_current_bytes REAL;
ALTER TABLE decision ADD COLUMN fact_memory_growth_bytes_per_sec REAL;
ALTER TABLE decision ADD COLUMN fact_cpu_some_avg10 REAL;
ALTER TABLE decision ADD COLUMN fact_memory_some_avg10 REAL;
ALTER TABLE decision ADD COLUMN fact_memory_full_avg10 REAL;
ALTER TABLE decision ADD COLUMN fact_io_some_avg10 REAL;
ALTER TABLE decision ADD COLUMN fact_throttled_ratio REAL;
ALTER TABLE decision ADD COLUMN fact_refaults_per_sec REAL;
ALTER TABLE decision ADD COLUMN fact_major_faults_per_sec REAL;
ALTER TABLE decision ADD COLUMN fact_floor REAL;
ALTER TABLE decision ADD COLUMN fact_earlier_runs REAL;

CREATE TABLE refusal (
  refusal INTEGER PRIMARY KEY,
  container INTEGER NOT NULL, time_ns INTEGER NOT NULL,
  decision_id INTEGER NOT NULL, monotonic_ns INTEGER NOT NULL,
  resource TEXT NOT NULL, direction TEXT NOT NULL, reason TEXT NOT NULL, verdict TEXT NOT NULL,
  phase_state TEXT NOT NULL, phase_index INTEGER NOT NULL,
  phase_distance REAL, phase_margin REAL,
  usage REAL, statistic REAL, sample_count REAL,
  old_cpu_max TEXT, old_cpu_max_burst INTEGER, old_cpu_weight INTEGER,
  old_memory_max TEXT, old_memory_high TEXT, old_memory_low TEXT, old_memory_min TEXT,
  new_cpu_max TEXT, new_cpu_max_burst INTEGER, new_cpu_weight INTEGER,
  new_memory_max TEXT, new_memory_high TEXT, new_memory_low TEXT, new_memory_min TEXT,
  writer TEXT,
  fact_cpu_cores REAL, fact_memory_need_bytes REAL, fact_memory_peak_need_bytes REAL,
  fact_memory_current_bytes REAL, fact_memory_growth_bytes_per_sec REAL, fact_cpu_some_avg10 REAL,
  fact_memory_some_avg10 REAL, fact_memory_full_avg10 REAL, fact_io_some_avg10 REAL,
  fact_throttled_ratio REAL, fact_refaults_per_sec REAL, fact_major_faults_per_sec REAL,
  fact_floor REAL, fact_earlier_runs REAL);
CREATE INDEX refusal_time ON refusal (time_ns);
CREATE INDEX refusal_container ON refusal (container, time_ns);
INSERT INTO refusal SELECT * FROM decision WHERE verdict <> 'allowed' ORDER BY decision;
DELETE FROM decision WHERE verdict <> 'allowed';

CREATE INDEX outcome_decision ON outcome (decision_id);
)sql";

// Blocks of older points that stand for several each (storage/thinning.h); as table block is.
constexpr const char* kVersion4 = R"sql(
CREATE TABLE medium (
  block INTEGER PRIMARY KEY,
  container INTEGER NOT NULL, first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL,
  point_count INTEGER NOT NULL, crc32c INTEGER NOT NULL, payload BLOB NOT NULL);
CREATE INDEX medium_time ON medium (container, first_ns, last_ns);

CREATE TABLE coarse (
  block INTEGER PRIMARY KEY,
  container INTEGER NOT NULL, first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL,
  point_count INTEGER NOT NULL, crc32c INTEGER NOT NULL, payload BLOB NOT NULL);
CREATE INDEX coarse_time ON coarse (container, first_ns, last_ns);
)sql";

// Open blocks are no longer written anew with each flush (storage/recent_ring.h).
constexpr const char* kVersion5 = R"sql(
INSERT INTO block (container,first_ns,last_ns,point_count,crc32c,payload)
  SELECT container,first_ns,last_ns,point_count,crc32c,payload FROM tail ORDER BY first_ns;
DROP TABLE tail;
CREATE TABLE recent (slot INTEGER PRIMARY KEY, page BLOB NOT NULL);
)sql";

constexpr std::array kSteps = {kVersion1, kVersion2, kVersion3, kVersion4, kVersion5};

// What is written is hardly read again: a flush of hundreds of containers has room. The default of
// 2 MB would fill up with the pages of blocks, and stay in memory.
constexpr int kCacheKib = 512;

// Changes nothing in a file that is there: auto_vacuum would write to one that has it, and a number
// of ours over somebody else's. EXCLUSIVE comes before all that reads the file: the write-ahead
// log's index then lies in this process' memory, not in a -shm file, and no second connection can
// ever take part. INCREMENTAL lets the file shrink when the cap does. FAST: distributions build
// SQLite so that it writes zeros over all that is deleted, a fifth of what is written at the cap;
// what nothing else has to be written for stays as it was.
Status set_session(Connection& connection) {
  if (Status first = connection.execute("PRAGMA locking_mode=EXCLUSIVE; PRAGMA page_size=" +
                                        std::to_string(kPageSizeBytes));
      !first)
    return first;
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
      "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
      "PRAGMA wal_autocheckpoint=" +
      std::to_string(budget.checkpoint_pages) +
      "; PRAGMA journal_size_limit=" + std::to_string(budget.wal_bytes));
}

// Last: a file at its cap has to grow for a moment when its schema is renewed.
Status set_cap(Connection& connection, const PageBudget& budget) {
  return connection.execute("PRAGMA max_page_count=" + std::to_string(budget.file_pages));
}

// Somebody else's database is neither ours to write nor ours to move away.
Status check_owner(Connection& connection, const std::string& name) {
  const Result<std::int64_t> owner = connection.integer("PRAGMA application_id");
  if (!owner) return std::unexpected(owner.error());
  const Result<std::int64_t> tables = connection.integer("SELECT count(*) FROM sqlite_schema");
  if (!tables) return std::unexpected(tables.error());
  if (*owner == kApplicationId || (*owner == 0 && *tables == 0)) return {};
  return failure(ErrorKind::invalid,
                 name + ": a database, but not one of cgphase; it was left as it is: move it away");
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

std::span<const char* const> schema_steps() { return kSteps; }

Status migrate(Connection& connection, const std::string& name,
               std::span<const char* const> steps) {
  const Result<std::int64_t> version = connection.integer("PRAGMA user_version");
  if (!version) return std::unexpected(version.error());
  const auto newest = static_cast<std::int64_t>(steps.size());
  if (*version == newest) return {};
  if (*version > newest || *version < 0)
    return failure(ErrorKind::unsupported,
                   name + ": schema " + std::to_string(*version) + " is newer than " +
                       std::to_string(newest) +
                       ", the newest that this version of cgphase knows; " +
                       "it was left as it is: install the newer version or name another state_dir");
  Result<Transaction> transaction = Transaction::begin(connection);
  if (!transaction) return std::unexpected(transaction.error());
  for (auto step = *version; step < newest; ++step)
    if (Status done = connection.execute(steps[static_cast<std::size_t>(step)]); !done) return done;
  if (Status done = connection.execute("PRAGMA application_id=" + std::to_string(kApplicationId) +
                                       "; PRAGMA user_version=" + std::to_string(newest));
      !done)
    return done;
  return transaction->commit();
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
  if (Status migrated = migrate(connection, name, schema_steps()); !migrated) return migrated;
  return set_cap(connection, budget);
}

}  // namespace cgphase
