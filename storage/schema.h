// The tables of the database, and the settings of its connection (docs/internals/storage.md).
#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "storage/sqlite.h"

namespace cgphase {

inline constexpr std::int64_t kApplicationId = 0x63677068;  // "cgph"
inline constexpr std::int64_t kSchema = 8;                  // PRAGMA user_version
inline constexpr std::int64_t kPageSizeBytes = kPageBytes;
inline constexpr Bytes kMinimumCap{512 * 1024};

// The shares of the database file and its -wal file in the cap.
struct PageBudget {
  std::int64_t file_pages = 0;
  std::int64_t checkpoint_pages = 0;
  std::int64_t wal_bytes = 0;
};
PageBudget page_budget(Bytes cap);

// Locks the file, sets what SQLite forgets at close, and creates the tables of an empty file.
// Errors: invalid (another process has it open, or another program made it), unsupported (another
// schema), io. connection.fault() reports a corrupt or outdated file.
Status prepare_database(Connection& connection, const std::string& name, const PageBudget& budget);

// Error: unsupported (not kSchema); connection.fault() reports an outdated file.
Status check_schema(Connection& connection, const std::string& name);

}  // namespace cgphase
