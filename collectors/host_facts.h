// Reads the capacities of this host and which kernel features it has.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/node_sampler.h"
#include "collectors/sample.h"

namespace cgphase {

// The value after `key` ("MemTotal:") in the text of /proc/meminfo.
std::optional<Bytes> meminfo_bytes(std::string_view text, std::string_view key);

// Reads MemTotal and SwapTotal from meminfo and the online processors from stat, both below
// `proc_root`, and this kernel's page size. A missing file leaves its field 0.
HostCapacity read_host_capacity(const std::string& proc_root);

// The sources cgroup v2, four controllers, PSI and swap: present, or the reason why not.
std::vector<Source> find_sources(int root_fd, const std::string& proc_root);

}  // namespace cgphase
