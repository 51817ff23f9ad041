// What this host has, and what can be read on it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collectors/node_sampler.h"
#include "collectors/sample.h"

namespace cgphase {

// The number behind `key` ("MemTotal:") in the text of /proc/meminfo.
std::optional<Bytes> meminfo_bytes(std::string_view text, std::string_view key);

// MemTotal and SwapTotal of meminfo and the processors that are online, from stat, both below
// `proc_root`, and this kernel's page. A missing file leaves its field 0.
HostCapacity read_host_capacity(const std::string& proc_root);

// An open cgroup2 root, or a plain directory as in tests. unsupported: cgroup v1 or a hybrid
// root; the text names the way out.
Status require_cgroup_v2(int root_fd, const std::string& root);

// cgroup v2, the four controllers, PSI, swap: present, or why not.
std::vector<Source> find_sources(int root_fd, const std::string& proc_root);

}  // namespace cgphase
