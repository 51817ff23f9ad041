// The database file on its file system.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "base/units.h"

namespace cgphase {

inline constexpr int kMaxSetAside = 100;  // of each reason

bool file_exists(const std::string& path);
// 0 if there is no file.
std::uint64_t file_bytes(const std::string& path);
// Why samples must not be written to the file system of `path`: it is read-only or has less than
// `min_free`. Empty otherwise.
std::string disk_problem(const std::string& path, Bytes min_free);
// Renames a database and its -wal to PATH.REASON-N; returns the new name. Error: io, also if there
// are kMaxSetAside of them.
Result<std::string> set_aside(const std::string& path, const std::string& reason);
// The file that set_aside() moved last for this reason; empty if there is none.
std::string newest_set_aside(const std::string& path, const std::string& reason);
// Opens a database file with a lock that keeps SQLite writers out. Errors: not_found, denied,
// invalid (a daemon has it open), io.
Result<Fd> lock_for_reading(const std::string& path);

}  // namespace cgphase
