// What memory.reclaim drops a little at a time. It leaves no state behind. Pure.
#pragma once

#include <chrono>
#include <optional>

#include "collectors/sample.h"
#include "core/core.h"
#include "core/tick.h"
#include "policy/policy.h"

namespace cgphase {

inline constexpr std::chrono::seconds kReclaimInterval{6};

// 0 if it was not measured.
inline double bytes_of(const std::optional<Bytes>& bytes) {
  return static_cast<double>(bytes.value_or(Bytes{}).value);
}

// Whether the host has swap that the container may use. It may be full.
bool has_swap(const Sample& sample, const HostCapacity& host);

// Page cache that keeps memory.high from following need: a small share of it once per
// kReclaimInterval, while pressure is quiet (docs/safety.md). Absent if nothing is to be dropped.
std::optional<CacheReclaim> cache_in_way(const ContainerView& view);

// Memory of an idle container whose owner agrees: the same small share, while pressure is quiet. If
// swap takes some, it may be any memory, else page cache.
std::optional<CacheReclaim> idle_memory(const ContainerView& view, const HostCapacity& host);

// What is reclaimed of a container every kReclaimInterval: one of the two above. While the host is
// short of memory, class batch has its turn (core/shortage.h), and idle containers wait.
std::optional<CacheReclaim> reclaim_now(ContainerView& view, const Policy& policy,
                                        const NodeSample& tick, bool host_is_short);

}  // namespace cgphase
