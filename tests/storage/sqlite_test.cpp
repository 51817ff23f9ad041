#include "storage/sqlite.h"

#include <doctest/doctest.h>

#include <string>

using namespace cgphase;

namespace {

// How many rows SQLite stepped over before the first row of `sql`.
int rows_read_for(const std::string& sql, const std::string& schema) {
  sqlite3* connection = nullptr;
  REQUIRE(sqlite3_open(":memory:", &connection) == SQLITE_OK);
  REQUIRE(sqlite3_exec(connection, schema.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  REQUIRE(sqlite3_prepare_v2(connection, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK);
  CHECK(sqlite3_step(statement) == SQLITE_ROW);
  const int steps = sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_FULLSCAN_STEP, 0);
  sqlite3_finalize(statement);
  sqlite3_close(connection);
  return steps;
}

// A thousand rows, beside an index that SQLite would rather read than them.
const std::string kRows =
    "CREATE TABLE rows (row INTEGER PRIMARY KEY, container INTEGER NOT NULL, payload BLOB);"
    "CREATE INDEX rows_container ON rows (container);"
    "WITH RECURSIVE n(i) AS (SELECT 7 UNION ALL SELECT i + 1 FROM n WHERE i < 1006)"
    " INSERT INTO rows SELECT i, i % 10, NULL FROM n;";

RowSpan span_in(const std::string& schema) {
  Result<Connection> connection = Connection::open(":memory:");
  REQUIRE(connection.has_value());
  REQUIRE(connection->execute(schema).has_value());
  Result<Statement> statement = connection->prepare(row_span_sql("rows"));
  REQUIRE(statement.has_value());
  const Result<RowSpan> span = read_row_span(*statement);
  REQUIRE(span.has_value());
  return *span;
}

}  // namespace

TEST_CASE("the span of a table is its lowest and highest row") {
  const RowSpan span = span_in(kRows);
  CHECK(span.first == 7);
  CHECK(span.last == 1006);
  CHECK(span.count() == 1000);
}

TEST_CASE("the span of an empty table has no rows") {
  CHECK(span_in("CREATE TABLE rows (row INTEGER PRIMARY KEY)").count() == 0);
}

TEST_CASE("the span of a table is found without a look at its rows") {
  CHECK(rows_read_for(row_span_sql("rows"), kRows) == 0);
  // What SQLite does with both in one query, or there would be nothing to see.
  CHECK(rows_read_for("SELECT min(row), max(row) FROM rows", kRows) > 0);
}
