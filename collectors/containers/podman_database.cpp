#include "collectors/containers/podman_database.h"

#include <sqlite3.h>

#include <memory>
#include <utility>

#include "collectors/containers/bolt_file.h"

namespace cgphase {
namespace {

constexpr std::size_t kHeaderBytes = 100;
constexpr std::size_t kWriteVersion = 18, kReadVersion = 19;
constexpr char kWithoutLog = 1;
constexpr int kInstructions = 100'000;  // of SQLite's machine; one row takes about ten

using Connection = std::unique_ptr<sqlite3, int (*)(sqlite3*)>;
using Query = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;

std::unexpected<Error> no_database(const char* why) {
  return failure(ErrorKind::invalid, std::string("no database of Podman: ") + why);
}

int stop(void*) { return 1; }

// The schema is foreign, too: it may name a view that never ends, or functions.
void distrust(sqlite3* connection) {
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_progress_handler(connection, kInstructions, stop, nullptr);
}

}  // namespace

Result<std::string> config_in_sqlite(std::string database, const std::string& id) {
  if (database.size() < kHeaderBytes) return no_database("too short");
  // A database in memory has no log beside it. What only a log has is not seen.
  database[kWriteVersion] = database[kReadVersion] = kWithoutLog;
  sqlite3* opened = nullptr;
  const int open = sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE, nullptr);
  const Connection connection(opened, sqlite3_close);
  if (open != SQLITE_OK) return no_database(sqlite3_errstr(open));
  const auto size = static_cast<sqlite3_int64>(database.size());
  const int loaded = sqlite3_deserialize(
      opened, "main", reinterpret_cast<unsigned char*>(database.data()), size, size,
      SQLITE_DESERIALIZE_READONLY);
  if (loaded != SQLITE_OK) return no_database(sqlite3_errstr(loaded));
  distrust(opened);
  sqlite3_stmt* prepared = nullptr;
  if (sqlite3_prepare_v2(opened, "SELECT JSON FROM ContainerConfig WHERE ID = ?1", -1, &prepared,
                         nullptr) != SQLITE_OK)
    return no_database(sqlite3_errmsg(opened));
  const Query query(prepared, sqlite3_finalize);
  sqlite3_bind_text(prepared, 1, id.data(), static_cast<int>(id.size()), SQLITE_STATIC);
  const int step = sqlite3_step(prepared);
  if (step == SQLITE_DONE)
    return failure(ErrorKind::not_found, "Podman's database does not have this container");
  if (step != SQLITE_ROW) return no_database(sqlite3_errstr(step));
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(prepared, 0));
  if (text == nullptr) return no_database("a container without its configuration");
  return std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(prepared, 0)));
}

Result<std::string> config_in_bolt(std::string database, std::string_view id) {
  const Result<BoltFile> file = BoltFile::parse(std::move(database));
  if (!file) return std::unexpected(file.error());
  const auto containers = file->bucket(file->root(), "ctr");
  const auto container = containers ? file->bucket(*containers, id) : std::nullopt;
  const auto config = container ? file->value(*container, "config") : std::nullopt;
  if (!config)
    return failure(ErrorKind::not_found, "Podman's database does not have this container");
  return std::string(*config);
}

}  // namespace cgphase
