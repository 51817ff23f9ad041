#include "storage/sqlite.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/check.h"
#include "base/fd.h"
#include "base/text.h"

namespace cgphase {
namespace {

const char* code_word(int code) {
  switch (code) {
    case SQLITE_FULL: return "SQLITE_FULL";
    case SQLITE_IOERR: return "SQLITE_IOERR";
    case SQLITE_CORRUPT: return "SQLITE_CORRUPT";
    case SQLITE_NOTADB: return "SQLITE_NOTADB";
    case SQLITE_BUSY: return "SQLITE_BUSY";
    case SQLITE_READONLY: return "SQLITE_READONLY";
    case SQLITE_CANTOPEN: return "SQLITE_CANTOPEN";
    case SQLITE_NOMEM: return "SQLITE_NOMEM";
    case SQLITE_TOOBIG: return "SQLITE_TOOBIG";
    default: return "SQLite";
  }
}

ErrorKind kind_of_code(int code) {
  switch (code) {
    case SQLITE_READONLY:
    case SQLITE_PERM: return ErrorKind::denied;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return ErrorKind::invalid;
    default: return ErrorKind::io;
  }
}

std::unexpected<Error> sql_failure(sqlite3* connection, SqlFault& fault) {
  const int code = sqlite3_extended_errcode(connection) & 0xff;
  if (fault.code == SQLITE_OK) fault.code = code;
  const char* file = sqlite3_db_filename(connection, "main");
  std::string text = file != nullptr && *file != '\0' ? escape_name(file) : "history in memory";
  text += std::string(": ") + sqlite3_errmsg(connection) + " (" + code_word(code);
  // The errno word is more exact than SQLite's "disk I/O error".
  const int system_error = sqlite3_system_errno(connection);
  if (code == SQLITE_IOERR && system_error != 0) text += ", " + errno_word(system_error);
  return failure(kind_of_code(code), text + ")");
}

// SQLite would create a world-readable file. An existing file is not opened here: closing its
// descriptor would release the POSIX locks of this process.
Status create_private(const std::string& path) {
  const Result<Fd> fd = open_path(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0640);
  if (fd) return {};
  struct stat existing {};
  if (::stat(path.c_str(), &existing) == 0) return {};
  return std::unexpected(fd.error());
}

}  // namespace

Result<bool> Statement::next() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    sqlite3_reset(statement_.get());
    return false;
  }
  auto error = sql_failure(sqlite3_db_handle(statement_.get()), *fault_);
  sqlite3_reset(statement_.get());
  return error;
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }

std::string_view Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::string_view Statement::blob(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

SqlValue Statement::value(int column) const {
  switch (sqlite3_column_type(statement_.get(), column)) {
    case SQLITE_NULL: return {};
    case SQLITE_INTEGER: return integer(column);
    case SQLITE_FLOAT: return real(column);
    default: return std::string(text(column));
  }
}

std::string_view Statement::column_name(int column) const {
  const char* const name = sqlite3_column_name(statement_.get(), column);
  return name != nullptr ? name : "";
}

std::string_view Statement::column_type(int column) const {
  const char* const type = sqlite3_column_decltype(statement_.get(), column);
  return type != nullptr ? type : "";
}

Status Statement::run_values(std::span<const SqlValue> values) {
  begin();
  int index = 0;
  for (const SqlValue& value : values) {
    ++index;
    if (std::holds_alternative<std::monostate>(value))
      sqlite3_bind_null(statement_.get(), index);
    else if (const auto* const number = std::get_if<std::int64_t>(&value))
      bind(index, *number);
    else if (const auto* const real_number = std::get_if<double>(&value))
      bind(index, *real_number);
    else
      bind(index, std::get<std::string>(value));
  }
  return each([] {});
}

void Statement::bind(int index, std::int64_t value) {
  CHECK_INVARIANT(sqlite3_bind_int64(statement_.get(), index, value) == SQLITE_OK);
}

void Statement::bind(int index, double value) {
  CHECK_INVARIANT(sqlite3_bind_double(statement_.get(), index, value) == SQLITE_OK);
}

// A value that SQLite refuses (too big, out of memory) leaves NULL. The NOT NULL columns of the
// schema turn it into an error of the step.
void Statement::bind(int index, std::string_view text) {
  sqlite3_bind_text64(statement_.get(), index, text.data() != nullptr ? text.data() : "",
                      text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

void Statement::bind(int index, Blob blob) {
  sqlite3_bind_blob64(statement_.get(), index,
                      blob.bytes.data() != nullptr ? blob.bytes.data() : "", blob.bytes.size(),
                      SQLITE_TRANSIENT);
}

Result<Connection> Connection::open(const std::string& path) {
  if (path != ":memory:")
    if (Status created = create_private(path); !created) return std::unexpected(created.error());
  Connection connection;
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(
      path.c_str(), &raw,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      nullptr);
  connection.connection_.reset(raw);
  if (raw == nullptr) return failure(ErrorKind::io, escape_name(path) + ": out of memory");
  if (code != SQLITE_OK) return sql_failure(raw, *connection.fault_);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  // SQLite opens a write-protected file for reading without an error.
  if (sqlite3_db_readonly(raw, "main") == 1)
    return failure(ErrorKind::denied, escape_name(path) + ": not writable");
  return connection;
}

namespace {

// The path escaped for a SQLite URI.
std::string uri_of(const std::string& path, const char* query) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      constexpr const char* kDigits = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      uri += '%';
      uri += kDigits[byte >> 4];
      uri += kDigits[byte & 15];
    } else {
      uri += c;
    }
  }
  return uri + query;
}

}  // namespace

Result<Connection> Connection::open_unchanged(const std::string& path, bool has_log) {
  Connection connection;
  sqlite3* raw = nullptr;
  const int flags = (has_log ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_URI |
                    SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(uri_of(path, has_log ? "" : "?immutable=1").c_str(), &raw,
                                   flags, nullptr);
  connection.connection_.reset(raw);
  if (raw == nullptr) return failure(ErrorKind::io, escape_name(path) + ": out of memory");
  if (code != SQLITE_OK) return sql_failure(raw, *connection.fault_);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  connection.keep_wal_on_close();
  if (has_log && sqlite3_db_readonly(raw, "main") == 1)
    return failure(ErrorKind::denied, escape_name(path) +
                                          ": its daemon did not stop well, and so reading it needs "
                                          "the right to write it; run this with sudo");
  // EXCLUSIVE keeps the index of the -wal in this process' memory, so that no -shm is made.
  const Status set = connection.execute(
      "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0;"
      "PRAGMA temp_store=MEMORY; PRAGMA locking_mode=EXCLUSIVE; PRAGMA query_only=ON");
  if (!set) return std::unexpected(set.error());
  return connection;
}

Status Connection::execute(const std::string& sql) {
  if (sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK)
    return {};
  return sql_failure(connection_.get(), *fault_);
}

Result<Statement> Connection::prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v3(connection_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (code != SQLITE_OK) return sql_failure(connection_.get(), *fault_);
  Statement statement;
  statement.statement_.reset(raw);
  statement.fault_ = fault_.get();
  return statement;
}

Status Connection::prepare_all(
    const std::vector<std::pair<Statement*, std::string>>& statements) {
  for (const auto& [statement, sql] : statements) {
    Result<Statement> prepared = prepare(sql);
    if (!prepared) return std::unexpected(prepared.error());
    *statement = std::move(*prepared);
  }
  return {};
}

Result<std::int64_t> Connection::integer(std::string_view sql) {
  Result<Statement> statement = prepare(sql);
  if (!statement) return std::unexpected(statement.error());
  const Result<std::optional<std::int64_t>> number = statement->first_integer();
  if (!number) return std::unexpected(number.error());
  if (!*number) return failure(ErrorKind::io, std::string(sql) + ": no row");
  return **number;
}

void Connection::keep_wal_on_close() {
  sqlite3_db_config(connection_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

std::string row_span_sql(std::string_view table) {
  const std::string from = " FROM " + std::string(table);
  return "SELECT (SELECT min(rowid)" + from + "), (SELECT max(rowid)" + from + ")";
}

Result<RowSpan> read_row_span(Statement& statement) {
  statement.begin();
  const Result<bool> row = statement.next();
  if (!row) return std::unexpected(row.error());
  RowSpan span;
  if (*row && !statement.is_null(0)) span = {statement.integer(0), statement.integer(1)};
  statement.stop();
  return span;
}

Result<Transaction> Transaction::begin(Connection& connection) {
  if (Status begun = connection.execute("BEGIN IMMEDIATE"); !begun)
    return std::unexpected(begun.error());
  return Transaction(connection);
}

Transaction::~Transaction() {
  // Some errors, such as a full disk, have rolled back already. If a ROLLBACK fails, the next BEGIN
  // reports it.
  if (connection_ != nullptr && connection_->in_transaction())
    static_cast<void>(connection_->execute("ROLLBACK"));
}

Status Transaction::commit() {
  Status committed = connection_->execute("COMMIT");
  if (committed) connection_ = nullptr;
  return committed;
}

}  // namespace cgphase
