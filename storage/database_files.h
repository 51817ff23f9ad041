// The files of a database on their disk.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace cgphase {

inline constexpr int kMaxQuarantined = 100;

bool file_exists(const std::string& path);
// 0 where there is none.
std::uint64_t file_bytes(const std::string& path);
// Renames a database and its -wal, which belong together, to PATH.corrupt-N. The name it went to.
// Error: io, also where kMaxQuarantined lie there already.
Result<std::string> set_aside(const std::string& path);

}  // namespace cgphase
