// Podman's record of a container, from the databases that Podman keeps in its storage: SQLite
// (db.sql, Podman 5) or bbolt (libpod/bolt_state.db, Podman 4). Podman itself is not asked, and its
// locks are not taken: a copy of the file is read.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cgphase {

inline constexpr std::size_t kMaxDatabaseBytes = 32 << 20;

// The JSON text of the container's configuration. `database` is the content of the file.
// Errors: not_found (no such container), invalid (no such database).
Result<std::string> config_in_sqlite(std::string database, const std::string& id);
Result<std::string> config_in_bolt(std::string database, std::string_view id);

}  // namespace cgphase
