// What the memory of a cgroup holds at this moment, read by the thread that is about to write a
// limit. Nothing is allocated on success.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "base/units.h"

namespace cgphase {

// The whole of memory.stat is shorter (about 2 KiB in Linux 6.18).
inline constexpr std::size_t kMemoryStatBytes = 16384;

// Reads memory.current, memory.stat and memory.swap.current. Errors: gone, not_found, invalid, io.
Result<Bytes> read_memory_need(int directory_fd);
// Reads a file of one number.
Result<Bytes> read_byte_count(int directory_fd, const char* name);

}  // namespace cgphase
