// Waits for a processor and switches of containers (run_queue.bpf.c).
#pragma once

#include <memory>
#include <string_view>

#include "collectors/ebpf/cgroup_counter.h"

namespace cgphase {

// Counts from now on. `tier`: "tp_btf" or "raw_tp", empty for the first that works. Errors:
// unsupported (no type information), denied (it takes CAP_BPF and CAP_PERFMON), and what the kernel
// says besides. `room`: cgroups that have running threads.
Result<std::unique_ptr<CgroupCounter>> start_run_queue_counter(std::uint32_t room,
                                                                 std::string_view tier = "");

}  // namespace cgphase
