// What the kernel tells of one open graphics device: /proc/PID/fdinfo/FD of drivers that have usage
// stats (Documentation/gpu/drm-usage-stats.rst). Pure; arbitrary bytes are allowed.
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

// Kinds of engines of one descriptor; further ones are passed over.
inline constexpr std::size_t kMostEngines = 64;

// One kind of engine: what the client has had of it so far. Drivers tell time, or cycles of it.
struct DrmEngine {
  Counter busy_ns;
  Counter busy_cycles, total_cycles;
  std::uint64_t capacity = 1;  // engines of this kind
};

struct DrmFdinfo {
  std::string driver;
  std::string pci_address;                 // empty where it is on no PCI bus
  std::optional<std::uint64_t> client_id;  // the same for descriptors that share one client
  std::map<std::string, DrmEngine, std::less<>> engines;
  std::optional<Bytes> memory;             // of the device's own; system memory is the cgroup's
};

// Absent where it is no graphics device, or one whose driver tells nothing.
std::optional<DrmFdinfo> scan_drm_fdinfo(std::string_view text);

// The part of one GPU that was used between two readings of a client, by its busiest kind of
// engine: 1 is all of it. Absent where nothing was told both times.
std::optional<double> busy_ratio(const DrmFdinfo& before, const DrmFdinfo& now,
                                 double elapsed_ns);

}  // namespace cgphase
