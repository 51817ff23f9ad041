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

// memory_need (cgroupfs/cgroup_stats.h) of the text of memory.stat and of the two numbers. Absent
// where the text has none of the main lines.
std::optional<Bytes> need_of(std::string_view memory_stat, std::optional<Bytes> memory_current,
                             std::optional<Bytes> swap_current);

// Reads memory.current, memory.stat and memory.swap.current. Errors: gone, not_found, invalid, io.
Result<Bytes> read_memory_need(int directory_fd);
// Reads a file of one number.
Result<Bytes> read_byte_count(int directory_fd, const char* name);

}  // namespace cgphase
