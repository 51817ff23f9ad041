// A piece of a table as plain values, on its way from the database to whoever reads it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace cgphase {

// NULL, and SQLite's other types but blobs.
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;

struct TableColumn {
  std::string name, type;  // type as the schema declares it: INTEGER, REAL, TEXT or nothing
  friend bool operator==(const TableColumn&, const TableColumn&) = default;
};

// Rows have as many values as there are columns; the first is the number of the row.
struct TablePage {
  std::vector<TableColumn> columns;
  std::vector<std::vector<SqlValue>> rows;
};

// The tables that are told so: all but the packed samples.
inline constexpr std::array<std::string_view, 5> kPlainTables = {"container", "decision", "refusal",
                                                                 "outcome", "learned"};

}  // namespace cgphase
