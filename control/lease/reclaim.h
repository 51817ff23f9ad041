// Reclaim through memory.reclaim, which leaves no state behind and kills nothing.
#pragma once

#include <functional>

#include "base/result.h"
#include "base/units.h"

namespace cgphase {

// Extra reclaim below a new limit, so that the container does not reach it at once.
inline constexpr std::uint64_t kRoomBytes = 4 * kMiB;

// Reclaims `bytes` in bounded pieces until `expired`. Reclaiming less (EAGAIN, EINTR) is not an
// error. Errors: not_found (the kernel has no memory.reclaim), gone, denied.
Status reclaim_memory(int directory_fd, Bytes bytes, const std::function<bool()>& expired);

// Reclaims what memory.current has above `limit`, and kRoomBytes more.
Status reclaim_below(int directory_fd, Bytes limit, const std::function<bool()>& expired);

}  // namespace cgphase
