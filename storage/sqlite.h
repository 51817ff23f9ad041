// SQLite as this folder uses it: a connection, prepared statements and a transaction that ends.
// All of it belongs to the thread that owns the Store.
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

#include "base/result.h"
#include "storage/table_page.h"

namespace cgphase {

// The primary result code of the first failure since it was last cleared; the Error of a call tells
// people, this tells the Store what to do about it.
struct SqlFault {
  int code = SQLITE_OK;
  bool corrupt() const { return code == SQLITE_CORRUPT || code == SQLITE_NOTADB; }
  bool full() const { return code == SQLITE_FULL; }
  bool busy() const { return code == SQLITE_BUSY || code == SQLITE_LOCKED; }
  // The file system answers no more, or lets nothing be written any more.
  bool lost() const { return code == SQLITE_IOERR || code == SQLITE_READONLY; }
};

struct Blob {
  std::string_view bytes;
};

// Its integers are signed; those above 2^63 - 1 come back by std::bit_cast.
inline std::int64_t as_signed(std::uint64_t value) { return std::bit_cast<std::int64_t>(value); }
template <class Time>  // MonotonicTime or WallTime
std::int64_t ns_of(Time time) {
  return time.time_since_epoch().count();
}

// One prepared statement. Either run() it, or begin() and then next() until it says false.
class Statement {
 public:
  Statement() = default;

  // Binds all parameters in order and steps to the end; rows are thrown away.
  template <class... Values>
  Status run(const Values&... values) {
    begin(values...);
    return finish();
  }

  // The same for as many as there are.
  Status run_values(std::span<const SqlValue> values);

  template <class... Values>
  void begin(const Values&... values) {
    sqlite3_reset(statement_.get());
    int index = 0;
    (bind(++index, values), ...);
  }
  // True when a row is there; after false or an error the statement is reset.
  Result<bool> next();
  // Ends a begin() whose rows are not all wanted.
  void stop() { sqlite3_reset(statement_.get()); }

  // Columns of the row, counted from 0. A text or blob is valid until the next call.
  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string_view text(int column) const;
  std::string_view blob(int column) const;
  // Whatever it is; a blob as its text.
  SqlValue value(int column) const;

  int column_count() const { return sqlite3_column_count(statement_.get()); }
  std::string_view column_name(int column) const;
  // As the schema declares it; empty where it does not.
  std::string_view column_type(int column) const;

 private:
  friend class Connection;
  Status finish();
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
  // Makes the file with mode 0640 where there is none. Errors: denied, not_found (no such
  // directory), io.
  static Result<Connection> open(const std::string& path);
  // For reading only: nothing is written to `path` or beside it. Without a -wal file there are no
  // locks either: the caller sees to it that nobody writes. With one it is locked against all
  // others and must be writable; SQLite asks for no less.
  static Result<Connection> open_unchanged(const std::string& path, bool has_log);

  Status execute(const std::string& sql);
  Result<Statement> prepare(std::string_view sql);
  // The first column of the first row.
  Result<std::int64_t> integer(std::string_view sql);

  SqlFault& fault() { return *fault_; }
  bool in_transaction() const { return sqlite3_get_autocommit(connection_.get()) == 0; }
  // Closing then leaves the -wal file as it is, as one does with a corrupt database.
  void keep_wal_on_close();

 private:
  struct Close {
    void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
  };
  std::unique_ptr<SqlFault> fault_ = std::make_unique<SqlFault>();
  std::unique_ptr<sqlite3, Close> connection_;
};

// The lowest and highest row id of a table; none where `last` is below `first`. Of one whose rows
// only ever go from the front they tell how many there are, or at most.
struct RowSpan {
  std::int64_t first = 1, last = 0;
  std::int64_t count() const { return last - first + 1; }
};
// Finds both at the ends of the b-tree: of a query for two aggregates SQLite reads each row.
std::string row_span_sql(std::string_view table);
// `statement`: prepared from row_span_sql().
Result<RowSpan> read_row_span(Statement& statement);

// BEGIN IMMEDIATE ... COMMIT; rolled back when it goes out of scope without commit().
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
