// Network traffic of containers (network.bpf.c).
#pragma once

#include <memory>

#include "collectors/ebpf/cgroup_counter.h"

namespace cgphase {

// Counts from now on what the sockets of each cgroup below the root send and receive. Errors:
// unsupported, denied (it takes CAP_BPF, CAP_PERFMON before Linux 6.12, and CAP_NET_ADMIN), and
// what the kernel says besides. `room`: cgroups that have traffic at one time.
Result<std::unique_ptr<CgroupCounter>> start_network_counter(const CgroupPaths& paths,
                                                             std::uint32_t room);

}  // namespace cgphase
