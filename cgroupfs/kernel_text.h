// Scanners for the text of cgroup v2 files (Documentation/admin-guide/cgroup-v2.rst). They are pure
// and do not allocate. A missing or malformed key stays absent, and an unknown key is skipped.
// Arbitrary bytes are allowed.
// The text may be cut anywhere. A number counts only if the kernel wrote the blank or newline after
// it, because half a number is another number. A counter or an amount below zero is absent. The
// kernel prints it as a number from 2^63 on.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "cgroupfs/cgroup_stats.h"
#include "cgroupfs/limits.h"

namespace cgphase {

// The part of a file that is read. If a file is longer, its whole lines up to there count.
// memory.stat has about 2 KB. io.stat has 85 bytes per device, so 3,000 devices fit.
inline constexpr std::size_t kKernelTextBytes = 256 * 1024;

CpuStat scan_cpu_stat(std::string_view text);

// kernel_bytes is `kernel` plus `sock`, which the kernel counts separately. Linux before 5.18 has
// no `kernel`; there it is kernel_stack + pagetables + percpu + sock + slab.
MemoryStat scan_memory_stat(std::string_view text);
MemoryEvents scan_memory_events(std::string_view text);

// Sums over all devices. An empty text means a cgroup without I/O: zeros, not absent. Some kernels
// print devices without numbers, without a newline, or without a name.
IoStat scan_io_stat(std::string_view text);
Pressure scan_pressure(std::string_view text);

// "QUOTA PERIOD" in microseconds; QUOTA may be "max". Absent if malformed or if the period is 0.
// parse_ expects the line without its newline, scan_ the whole file.
std::optional<CpuMax> parse_cpu_max(std::string_view line);
std::optional<CpuMax> scan_cpu_max(std::string_view text);

// One number, or "max" for no limit.
std::optional<MemoryLimit> parse_limit(std::string_view line);
std::optional<MemoryLimit> scan_limit(std::string_view text);

// Reads the numbers of `names` from a flat keyed file with lines of "KEY NUMBER". It serves callers
// with their own keys. `values` is as long as `names`; a value that the file lacks is not changed.
void scan_flat_keyed(std::string_view text, std::span<const std::string_view> names,
                     std::span<Counter> values);

// One number and its newline, nothing else.
Counter scan_number(std::string_view text);
// As scan_number(), for an amount that cannot be below zero.
Counter scan_amount(std::string_view text);

// cgroup.events.
struct CgroupEvents {
  std::optional<bool> populated, frozen;
};
CgroupEvents scan_cgroup_events(std::string_view text);

}  // namespace cgphase
