// Network traffic of containers (network.bpf.c).
#pragma once

#include <memory>

#include "collectors/ebpf/cgroup_counter.h"

namespace cgphase {

// Counts the traffic of the sockets of each cgroup below the root from now on. Errors: unsupported,
// denied (it needs CAP_BPF, CAP_PERFMON before Linux 6.12, and CAP_NET_ADMIN), and other errors of
// the kernel. `room` is the number of cgroups that have traffic at one time.
Result<std::unique_ptr<CgroupCounter>> start_network_counter(const CgroupPaths& paths,
                                                             std::uint32_t room);

}  // namespace cgphase
