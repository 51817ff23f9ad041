#include "storage/table_page.h"

#include <algorithm>

#include "base/text.h"
#include "storage/sqlite.h"

namespace cgphase {
namespace {

constexpr std::string_view kSecretColumn = "labels";

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
  Result<Statement> rows = connection.prepare("SELECT * FROM " + std::string(table) +
                                              " WHERE rowid > ? ORDER BY rowid LIMIT ?");
  if (!rows) return std::unexpected(rows.error());
  TablePage page;
  std::vector<int> exported;
  for (int column = 0; column < rows->column_count(); ++column) {
    if (rows->column_name(column) == kSecretColumn) continue;
    exported.push_back(column);
    page.columns.push_back(
        {std::string(rows->column_name(column)), std::string(rows->column_type(column))});
  }
  rows->begin(after, static_cast<std::int64_t>(kTablePageRows));
  for (std::size_t bytes = 0; bytes < kTablePageBytes;) {
    const Result<bool> row = rows->next();
    if (!row) return std::unexpected(row.error());
    if (!*row) break;
    auto& values = page.rows.emplace_back();
    for (const int column : exported) {
      values.push_back(rows->value(column));
      bytes += bytes_of(values.back());
    }
  }
  return page;
}

}  // namespace cgphase
