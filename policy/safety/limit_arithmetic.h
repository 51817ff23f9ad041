// Limits from cores and bytes: quota with its burst, whole pages, floors and steps. Pure.
#pragma once

#include "cgroupfs/limits.h"
#include "collectors/sample.h"
#include "policy/safety/guard_rails.h"

namespace cgphase {

// The limit in force as a number, the host's capacity where it is "max"; absent without a file.
std::optional<double> cpu_in_force(const Limits& limits, const HostCapacity& host);
std::optional<double> memory_in_force(const Limits& limits, const HostCapacity& host);

// `limits` with the knobs of one resource as in `original`, those that both have.
Limits with_original(const Limits& limits, const Limits& original, Resource resource);
bool is_original(const Limits& limits, const Limits& original, Resource resource);

// Whether a value in force is ours is told by the value. So what nobody `asked` for is never one
// that people write: no multiple of 10 microseconds or 1 MiB, but a microsecond or a page more.

// `limits` with a quota of `cores`, rounded up to a microsecond, and the period kept. At or above
// the ceiling it is the original. Burst is the original one, never above the quota.
// Needs limits.cpu_max and original.cpu_max.
Limits with_cpu(const Limits& limits, const Limits& original, const HostCapacity& host,
                double cores, bool asked = false);

// `limits` with memory.high of `bytes`, rounded up to a page; memory.max stays its owner's. At or
// above the ceiling, or where memory.high cannot be read, both are the originals.
Limits with_memory(const Limits& limits, const Limits& original, const HostCapacity& host,
                   double bytes, bool asked = false);

// max(p99 of the usage in the phase x 1.15, 10 ms per period), in cores. Needs limits.cpu_max.
double cpu_floor(const RailsConfig& config, const Limits& limits, double usage_p99_cores);

// What one lowering of the quota may come down to: not below `cores` nor `floor_cores`, nor by more
// than max(10 %, 2 cores).
double lowered_cpu(double in_force, double floor_cores, double cores);

// What must stay free above the need: max(256 MiB (25 % of a limit below 1 GiB), 10 % of the limit,
// allocation rate x 4 x reaction time).
double memory_headroom(const RailsConfig& config, double limit_bytes, double bytes_per_sec);

struct MemoryState {
  double limit_bytes = 0;       // in force
  double need_bytes = 0;        // now
  double peak_bytes = 0;        // of the need within the lowering window
  double bytes_per_sec = 0;     // p99 of the allocation rate
  double current_bytes = 0;     // memory.current, cache and all; 0 where unknown
  double cold_cache_bytes = 0;  // inactive_file, of which half may be reclaimed by one step
  bool long_step = false;       // need is steady, or earlier runs prove it
  double margin_factor = 1;     // what stays free above peak and need is so many times larger
  double oom_floor_bytes = 0;   // that earlier OOMs of the image taught
};

// max(peak x 1.15, need + headroom, floor of earlier OOMs), and not below memory.min and low.
double memory_floor(const RailsConfig& config, const Limits& limits, const MemoryState& state);

// What one lowering of memory.high may come down to on its way to `bytes`: by memory_step_ratio of
// the limit, or all the way where long steps are allowed.
double lowered_memory(const RailsConfig& config, const Limits& limits, const MemoryState& state,
                      double bytes);

}  // namespace cgphase
