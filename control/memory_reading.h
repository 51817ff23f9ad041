// What the memory of a cgroup holds at this moment, read by the thread that is about to write a
// limit. Nothing is allocated on success.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace cgphase {

// The whole of memory.stat is shorter (about 2 KiB in Linux 6.18).
inline constexpr std::size_t kMemoryStatBytes = 16384;

// memory_need (collectors/sample.h) of the text of memory.stat plus what is swapped out. Absent
// where the text has no `anon` line.
std::optional<Bytes> need_of(std::string_view memory_stat, Bytes swap_current);

// Reads memory.stat and memory.swap.current. Errors: gone, not_found, invalid.
Result<Bytes> read_memory_need(int directory_fd);
// Reads a file of one number.
Result<Bytes> read_byte_count(int directory_fd, const char* name);

}  // namespace cgphase
