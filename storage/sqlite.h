// SQLite as this folder uses it: connection, prepared statements, transaction. All objects belong
// to the thread that owns the Store.
#pragma once

#include <sqlite3.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "storage/table_page.h"

namespace cgphase {

// The primary result code of the first failure since it was cleared. The Error of a call is for
// people; the Store decides by this.
struct SqlFault {
  int code = SQLITE_OK;
  bool outdated = false;  // the file has an older schema
  bool corrupt() const { return code == SQLITE_CORRUPT || code == SQLITE_NOTADB; }
  bool full() const { return code == SQLITE_FULL; }
  bool busy() const { return code == SQLITE_BUSY || code == SQLITE_LOCKED; }
  // The file system fails, or became read-only.
  bool lost() const { return code == SQLITE_IOERR || code == SQLITE_READONLY; }
};

struct Blob {
  std::string_view bytes;
};

// SQLite's integers are signed; std::bit_cast returns those above 2^63 - 1.
inline std::int64_t as_signed(std::uint64_t value) { return std::bit_cast<std::int64_t>(value); }
template <class Time>  // MonotonicTime or WallTime
std::int64_t ns_of(Time time) {
  return time.time_since_epoch().count();
}

// One prepared statement. Either run() it, or begin() and then each(), or next() until it returns
// false.
class Statement {
 public:
  Statement() = default;

  // Binds all parameters in order and steps to the end, ignoring rows.
  template <class... Values>
  Status run(const Values&... values) {
    begin(values...);
    return each([] {});
  }

  Status run_values(std::span<const SqlValue> values);

  template <class... Values>
  void begin(const Values&... values) {
    sqlite3_reset(statement_.get());
    int index = 0;
    (bind(++index, values), ...);
  }
  // True if there is a row. After false or an error the statement is reset.
  Result<bool> next();
  // Calls `on_row` for each row.
  template <class OnRow>
  Status each(OnRow on_row) {
    for (;;) {
      const Result<bool> row = next();
      if (!row) return std::unexpected(row.error());
      if (!*row) return {};
      on_row();
    }
  }
  // The first column of the first row; absent if there is no row, or if it is NULL.
  template <class... Values>
  Result<std::optional<std::int64_t>> first_integer(const Values&... values) {
    begin(values...);
    const Result<bool> row = next();
    if (!row) return std::unexpected(row.error());
    std::optional<std::int64_t> found;
    if (*row && !is_null(0)) found = integer(0);
    stop();
    return found;
  }
  // Ends a begin() before its last row.
  void stop() { sqlite3_reset(statement_.get()); }

  // Columns of the row, from 0. A text or blob is valid until the next call.
  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string_view text(int column) const;
  std::string_view blob(int column) const;
  // Any type; a blob as its text.
  SqlValue value(int column) const;

  int column_count() const { return sqlite3_column_count(statement_.get()); }
  std::string_view column_name(int column) const;
  // As the schema declares it, or empty.
  std::string_view column_type(int column) const;

 private:
  friend class Connection;
  void bind(int index, std::int64_t value);
  void bind(int index, int value) { bind(index, std::int64_t{value}); }
  void bind(int index, double value);
  void bind(int index, std::string_view text);
  void bind(int index, const std::string& text) { bind(index, std::string_view(text)); }
  void bind(int index, Blob blob);
  template <class Value>
  void bind(int index, const std::optional<Value>& value) {
    if (value)
      bind(index, *value);
    else
      sqlite3_bind_null(statement_.get(), index);
  }

  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  SqlFault* fault_ = nullptr;
};

// One connection to one file, or to ":memory:".
class Connection {
 public:
  // Creates a missing file with mode 0640. Errors: denied, not_found (no such directory), io.
  static Result<Connection> open(const std::string& path);
  // Opens a file for reading; writes nothing to it or next to it. Without a -wal file SQLite takes
  // no locks, so the caller must. With one SQLite locks the file, which must be writable.
  static Result<Connection> open_unchanged(const std::string& path, bool has_log);

  Status execute(const std::string& sql);
  Result<Statement> prepare(std::string_view sql);
  Status prepare_all(const std::vector<std::pair<Statement*, std::string>>& statements);
  // The first column of the first row.
  Result<std::int64_t> integer(std::string_view sql);

  SqlFault& fault() { return *fault_; }
  bool in_transaction() const { return sqlite3_get_autocommit(connection_.get()) == 0; }
  // Closing then leaves the -wal file unchanged.
  void keep_wal_on_close();

 private:
  struct Close {
    void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
  };
  std::unique_ptr<SqlFault> fault_ = std::make_unique<SqlFault>();
  std::unique_ptr<sqlite3, Close> connection_;
};

// The lowest and highest row id of a table. An empty table has `last` below `first`. count() is
// exact if rows are deleted from the front only.
struct RowSpan {
  std::int64_t first = 1, last = 0;
  std::int64_t count() const { return last - first + 1; }
};
// Reads both ends of the b-tree. SQLite would read every row for a query with two aggregates.
std::string row_span_sql(std::string_view table);
// `statement`: prepared from row_span_sql().
Result<RowSpan> read_row_span(Statement& statement);

// BEGIN IMMEDIATE ... COMMIT. Without commit() the destructor rolls back.
class Transaction {
 public:
  static Result<Transaction> begin(Connection& connection);
  Transaction(Transaction&& other) noexcept
      : connection_(std::exchange(other.connection_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Status commit();

 private:
  explicit Transaction(Connection& connection) : connection_(&connection) {}
  Connection* connection_;
};

}  // namespace cgphase
