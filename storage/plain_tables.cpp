#include "storage/plain_tables.h"

#include <algorithm>

#include "base/text.h"

namespace cgphase {
namespace {

// An engine keeps the labels of its containers to root, and people keep secrets in them: an export
// is made by a group and handed on.
constexpr std::string_view kUntoldColumn = "labels";

std::size_t bytes_of(const SqlValue& value) {
  const auto* const text = std::get_if<std::string>(&value);
  return text != nullptr ? text->size() : sizeof(std::int64_t);
}

}  // namespace

Result<TablePage> read_table_page(Connection& connection, std::string_view table,
                                  std::int64_t after) {
  if (std::ranges::find(kPlainTables, table) == kPlainTables.end())
    return failure(ErrorKind::invalid,
                   "no table '" + escape_name(table.substr(0, 64)) + "' to export");
  const std::string name(table);
  const auto there = connection.integer(
      "SELECT count(*) FROM sqlite_schema WHERE type='table' AND name='" + name + "'");
  if (!there) return std::unexpected(there.error());
  TablePage page;
  if (*there == 0) return page;
  Result<Statement> rows = connection.prepare("SELECT * FROM " + name +
                                              " WHERE rowid > ? ORDER BY rowid LIMIT ?");
  if (!rows) return std::unexpected(rows.error());
  std::vector<int> told;
  for (int column = 0; column < rows->column_count(); ++column) {
    if (rows->column_name(column) == kUntoldColumn) continue;
    told.push_back(column);
    page.columns.push_back(
        {std::string(rows->column_name(column)), std::string(rows->column_type(column))});
  }
  rows->begin(after, static_cast<std::int64_t>(kTablePageRows));
  for (std::size_t bytes = 0; bytes < kTablePageBytes;) {
    const Result<bool> row = rows->next();
    if (!row) return std::unexpected(row.error());
    if (!*row) break;
    auto& values = page.rows.emplace_back();
    for (const int column : told) {
      values.push_back(rows->value(column));
      bytes += bytes_of(values.back());
    }
  }
  return page;
}

}  // namespace cgphase
