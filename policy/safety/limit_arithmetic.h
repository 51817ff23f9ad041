// Computes limits from cores and bytes: quota and burst, whole pages, floors and steps. Pure.
#pragma once

#include "cgroupfs/limits.h"
#include "collectors/sample.h"
#include "policy/safety/safety_rules.h"

namespace cgphase {

// The limit in force as a number. For "max" it is the host's capacity. Absent without a file.
std::optional<double> cpu_in_force(const Limits& limits, const HostCapacity& host);
std::optional<double> memory_in_force(const Limits& limits, const HostCapacity& host);

// `limits` with the knobs of one resource replaced by those of `original`, if both have them.
// Of memory only memory.high: memory.max is never lowered below the owner's.
Limits with_original(const Limits& limits, const Limits& original, Resource resource);
bool is_original(const Limits& limits, const Limits& original, Resource resource);
// Of everything that cgphase may write, memory.max included.
bool all_original(const Limits& limits, const Limits& original);

// cgphase recognises its own values by the number. A limit that nobody `asked` for is therefore
// never a round one. If it is a multiple of 10 microseconds or 1 MiB, one microsecond or page is
// added.

// `limits` with a quota of `cores`, rounded up to a microsecond, with the same period. At or above
// the ceiling it is the original. The burst is the original one, at most the quota. Requires
// limits.cpu_max and original.cpu_max.
Limits with_cpu(const Limits& limits, const Limits& original, const HostCapacity& host,
                double cores, bool asked = false);

// `limits` with memory.high of `bytes`, rounded up to a page. memory.max is unchanged. At or above
// the ceiling it is the original.
Limits with_memory(const Limits& limits, const Limits& original, const HostCapacity& host,
                   double bytes, bool asked = false);

// `limits` with what the budget grants: a quota of `amount` cores, or memory.max of `amount` bytes.
// with_own() has the originals of these two.
Limits with_granted(const Limits& limits, Resource resource, double amount);
Limits with_own(const Limits& limits, const Limits& original, Resource resource);

// max(p99 of use in the phase x 1.15, 10 ms per period), in cores. Requires limits.cpu_max.
double cpu_floor(const SafetyConfig& config, const Limits& limits, double usage_p99_cores);

// The lowest quota that one step may set. It is at least `cores` and `floor_cores`, and at most
// max(10 %, 2 cores) below the limit in force.
double lowered_cpu(double in_force, double floor_cores, double cores);

// The memory that must stay free above need: max(256 MiB (25 % of a limit below 1 GiB), 10 % of the
// limit, allocation rate x 4 x reaction time).
double memory_headroom(const SafetyConfig& config, double limit_bytes, double bytes_per_sec);

struct MemoryState {
  double limit_bytes = 0;       // in force
  double need_bytes = 0;        // now
  double peak_bytes = 0;        // of need within the lowering window
  double bytes_per_sec = 0;     // p99 of the allocation rate
  double current_bytes = 0;     // memory.current, including cache; 0 if unknown
  double cold_cache_bytes = 0;  // inactive_file; one step may reclaim half of it
  bool long_step = false;       // need is steady, or earlier runs prove it
  double margin_factor = 1;     // factor on the free memory above peak and need
  double oom_floor_bytes = 0;   // from earlier OOMs of the image
  double least_bytes = 0;       // the owner's minimum
};

// max(peak x 1.15, need + headroom, floor of earlier OOMs, the owner's minimum), and at least
// memory.min and memory.low.
double memory_floor(const SafetyConfig& config, const Limits& limits, const MemoryState& state);

// The lowest memory.high that one step towards `bytes` may set: memory_step_ratio of the limit
// lower, or `bytes` itself if long steps are allowed.
double lowered_memory(const SafetyConfig& config, const Limits& limits, const MemoryState& state,
                      double bytes);

// cpu.weight of a container of this class, whose own is `original`. Ten times or a tenth, within
// the kernel's bounds. It is never a round number, so that a value of somebody else's is not taken
// for ours.
std::uint32_t weight_of(ServiceClass service_class, std::uint32_t original);

}  // namespace cgphase
