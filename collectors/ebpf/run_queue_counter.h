// Counts waits for a processor and context switches of containers (run_queue.bpf.c).
#pragma once

#include <memory>
#include <string_view>

#include "collectors/ebpf/cgroup_counter.h"

namespace cgphase {

// Counts from now on. `tier` is "tp_btf", "raw_tp" or "tracepoint". The last needs no type
// information, but needs tracefs and costs more. If `tier` is empty, the first that works is used,
// and the last only without type information. Errors: denied (needs CAP_BPF and CAP_PERFMON; the
// last CAP_SYS_ADMIN or a low kernel.perf_event_paranoid), and other errors of the kernel. `room`
// is the number of cgroups with running threads.
Result<std::unique_ptr<CgroupCounter>> start_run_queue_counter(std::uint32_t room,
                                                                 std::string_view tier = "");

}  // namespace cgphase
