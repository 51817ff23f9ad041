// Waits for a processor and switches of containers (run_queue.bpf.c).
#pragma once

#include <memory>
#include <string_view>

#include "collectors/ebpf/cgroup_counter.h"

namespace cgphase {

// Counts from now on. `tier`: "tp_btf", "raw_tp", or "tracepoint", which needs no type information,
// takes tracefs and costs more; empty for the first that works, the last one only where there is no
// type information. Errors: denied (it takes CAP_BPF and CAP_PERFMON, the last one CAP_SYS_ADMIN
// or a low kernel.perf_event_paranoid), and what the kernel says besides. `room`: cgroups that have
// running threads.
Result<std::unique_ptr<CgroupCounter>> start_run_queue_counter(std::uint32_t room,
                                                                 std::string_view tier = "");

}  // namespace cgphase
