// Plain tables of the database, read page by page: what an export copies.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace cgphase {

class Connection;

// NULL, and SQLite's other types except blobs.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;

struct TableColumn {
  std::string name, type;  // as the schema declares it: INTEGER, REAL, TEXT or nothing
  friend bool operator==(const TableColumn&, const TableColumn&) = default;
};

// Each row has one value per column. The first column is the row number.
struct TablePage {
  std::vector<TableColumn> columns;
  std::vector<std::vector<SqlValue>> rows;
};

// All tables except those of packed samples.
inline constexpr std::array<std::string_view, 5> kPlainTables = {"container", "decision", "refusal",
                                                                 "outcome", "learned"};

// Limits of one page. The row that reaches the byte limit is the last one.
inline constexpr std::size_t kTablePageRows = 200;
inline constexpr std::size_t kTablePageBytes = 60 * 1024;

// Rows with numbers above `after`, ascending; the page after the last row is empty. The column
// `labels` is left out, because labels may contain secrets. Errors: invalid (not in kPlainTables),
// io.
Result<TablePage> read_table_page(Connection& connection, std::string_view table,
                                  std::int64_t after);

}  // namespace cgphase
