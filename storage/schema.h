// What a database of ours looks like, and how an older one becomes a newer one
// (docs/internals/storage.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/units.h"
#include "storage/sqlite.h"

namespace cgphase {

inline constexpr std::int64_t kApplicationId = 0x63677068;  // "cgph"
inline constexpr std::int64_t kPageSizeBytes = kPageBytes;
inline constexpr Bytes kMinimumCap{512 * 1024};

// How a cap is shared between the database file and its -wal file, in pages.
struct PageBudget {
  std::int64_t file_pages = 0;
  std::int64_t checkpoint_pages = 0;
  std::int64_t wal_bytes = 0;
};
PageBudget page_budget(Bytes cap);

// Locks the file, sets everything that SQLite forgets when it closes, and brings the schema up to
// date. Errors: invalid (another process has it open, or it is not ours), unsupported (a newer
// schema), io; a corrupt file is in connection.fault().
Status prepare_database(Connection& connection, const std::string& name, const PageBudget& budget);

// The statements that lead from version k to k + 1, k = 0, 1, ...; version 0 is an empty file.
std::span<const char* const> schema_steps();

// Runs the steps that are missing, all or none.
Status migrate(Connection& connection, const std::string& name, std::span<const char* const> steps);

}  // namespace cgphase
