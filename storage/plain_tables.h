// Rows of the tables that a person reads, as they lie in the database: what an export copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "storage/sqlite.h"
#include "storage/table_page.h"

namespace cgphase {

// A page has at most so many rows, and ends with the row that brings its texts and numbers to so
// many bytes.
inline constexpr std::size_t kTablePageRows = 200;
inline constexpr std::size_t kTablePageBytes = 60 * 1024;

// The rows whose number is above `after`, ascending; a page without rows is the last. A table that
// an older schema lacks has none. Errors: invalid (none of kPlainTables), io.
Result<TablePage> read_table_page(Connection& connection, std::string_view table,
                                  std::int64_t after);

}  // namespace cgphase
