// Reads the memory need of a cgroup at this moment. The thread that is about to write a limit calls
// it. On success nothing is allocated.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "base/units.h"

namespace cgphase {

// All of memory.stat is shorter (about 2 KiB in Linux 6.18).
inline constexpr std::size_t kMemoryStatBytes = 16384;

// Reads memory.current, memory.stat and memory.swap.current. Errors: gone, not_found, invalid, io.
Result<Bytes> read_memory_need(int directory_fd);
// Reads a file that contains one number.
Result<Bytes> read_byte_count(int directory_fd, const char* name);

}  // namespace cgphase
