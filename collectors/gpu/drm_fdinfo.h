// Parses /proc/PID/fdinfo/FD of an open graphics device whose driver has usage statistics
// (Documentation/gpu/drm-usage-stats.rst). Pure; arbitrary bytes are allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "collectors/sample.h"

namespace cgphase {

// Maximum number of engine kinds of one descriptor; more are ignored.
inline constexpr std::size_t kMostEngines = 64;

// One kind of engine: the client's use of it so far. Drivers report time or cycles.
struct DrmEngine {
  Counter busy_ns;
  Counter busy_cycles, total_cycles;
  std::uint64_t capacity = 1;  // number of engines of this kind
};

struct DrmFdinfo {
  std::string driver;
  std::string pci_address;                 // empty if it is not on a PCI bus
  std::optional<std::uint64_t> client_id;  // equal for descriptors that share one client
  std::map<std::string, DrmEngine, std::less<>> engines;
  std::optional<Bytes> memory;  // the device's own memory; system memory is charged to the cgroup
};

// Absent if it is not a graphics device, or if its driver reports nothing.
std::optional<DrmFdinfo> scan_drm_fdinfo(std::string_view text);

// The fraction of one GPU that a client used between two readings, by its busiest kind of engine: 1
// is all of it. Absent if no engine was reported both times.
std::optional<double> busy_ratio(const DrmFdinfo& before, const DrmFdinfo& now,
                                 double elapsed_ns);

}  // namespace cgphase
