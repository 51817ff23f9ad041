// Scanners for the text of cgroup v2 files (Documentation/admin-guide/cgroup-v2.rst). Pure, no
// allocation. Each gives what stands in `text`: a key that is missing or malformed stays absent, a
// key that is unknown is passed over. Arbitrary bytes are allowed.
// A text may be cut anywhere. A number counts only where the kernel wrote what follows it, a blank
// or a newline: half a number is another number. A counter or an amount below zero, which the
// kernel prints as a number from 2^63 on, is absent.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "cgroupfs/cgroup_stats.h"
#include "cgroupfs/limits.h"

namespace cgphase {

CpuStat scan_cpu_stat(std::string_view text);

// kernel_bytes is `kernel` plus `sock`, which the kernel counts apart. Before Linux 5.18 there is
// no `kernel`: then it is kernel_stack + pagetables + percpu + sock + slab.
MemoryStat scan_memory_stat(std::string_view text);
MemoryEvents scan_memory_events(std::string_view text);

// Sums over all devices. An empty text is a cgroup that did no I/O: zeros, not absent. Some kernels
// print devices without numbers, without a newline, or without a name.
IoStat scan_io_stat(std::string_view text);
Pressure scan_pressure(std::string_view text);

// "QUOTA PERIOD" in microseconds, QUOTA may be "max". Absent when malformed or the period is 0.
// parse_ takes the line without its newline, scan_ the whole file.
std::optional<CpuMax> parse_cpu_max(std::string_view line);
std::optional<CpuMax> scan_cpu_max(std::string_view text);

// One number, or "max" for no limit.
std::optional<MemoryLimit> parse_limit(std::string_view line);
std::optional<MemoryLimit> scan_limit(std::string_view text);

// The numbers of `names` in a flat keyed file, "KEY NUMBER" in each line, for a caller with keys of
// its own. `values` is as long as `names`; what the file does not have stays as it was.
void scan_flat_keyed(std::string_view text, std::span<const std::string_view> names,
                     std::span<Counter> values);

// One number and its newline, nothing else.
Counter scan_number(std::string_view text);
// The same of something that is counted, and so never below zero.
Counter scan_amount(std::string_view text);

// cgroup.events.
struct CgroupEvents {
  std::optional<bool> populated, frozen;
};
CgroupEvents scan_cgroup_events(std::string_view text);

}  // namespace cgphase
