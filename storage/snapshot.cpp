#include "storage/snapshot.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace cgphase {
namespace {

constexpr std::size_t kMostSnapshotColumns = 256;
constexpr std::size_t kLongestWord = 64;

// Columns may come from another process: nothing of them is SQL but plain words.
bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= kLongestWord && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool is_type(std::string_view text) {
  return text.empty() || text == "INTEGER" || text == "REAL" || text == "TEXT";
}

}  // namespace

// One transaction without a journal: a file that is not finished is thrown away.
Result<Snapshot> Snapshot::create(const std::string& path) {
  Result<Connection> opened = Connection::open(path);
  if (!opened) return std::unexpected(opened.error());
  Snapshot snapshot;
  snapshot.connection_ = *std::move(opened);
  const Status begun = snapshot.connection_.execute(
      "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA temp_store=MEMORY; BEGIN");
  if (!begun) return std::unexpected(begun.error());
  return snapshot;
}

Status Snapshot::add_table(const std::string& name, std::span<const TableColumn> columns,
                           bool numbered) {
  if (!is_word(name) || columns.empty() || columns.size() > kMostSnapshotColumns)
    return failure(ErrorKind::invalid, "table '" + escape_name(name.substr(0, kLongestWord)) +
                                           "' has no plain name, or no columns, or too many");
  std::string sql, places;
  for (const TableColumn& column : columns) {
    if (!is_word(column.name) || !is_type(column.type))
      return failure(ErrorKind::invalid,
                     "a column of table " + name + " has no plain name or no type of SQL");
    sql += (sql.empty() ? "\"" : ", \"") + column.name + "\" " + column.type;
    if (places.empty() && numbered) sql += " PRIMARY KEY";
    places += places.empty() ? "?" : ",?";
  }
  if (Status made = connection_.execute("CREATE TABLE \"" + name + "\" (" + sql + ")"); !made)
    return made;
  Result<Statement> add =
      connection_.prepare("INSERT INTO \"" + name + "\" VALUES (" + places + ")");
  if (!add) return std::unexpected(add.error());
  tables_[name] = {*std::move(add), columns.size()};
  return {};
}

Status Snapshot::add_row(const std::string& table, std::span<const SqlValue> values) {
  const auto found = tables_.find(table);
  if (found == tables_.end() || found->second.columns != values.size())
    return failure(ErrorKind::invalid, "a row does not fit into table " + escape_name(table));
  return found->second.add.run_values(values);
}

Status Snapshot::add_index(const std::string& table, const std::string& columns) {
  return connection_.execute("CREATE INDEX " + table + "_place ON " + table + " (" + columns +
                                   ")");
}

Status Snapshot::finish() {
  if (Status done = connection_.execute("COMMIT"); !done) return done;
  tables_.clear();
  connection_ = Connection();
  return {};
}

}  // namespace cgphase
