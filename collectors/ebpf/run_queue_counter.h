// Waits for a processor and switches of containers (run_queue.bpf.c).
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "collectors/ebpf/cgroup_counter.h"
#include "collectors/ebpf/counter_records.h"

namespace cgphase {

// Waits by length since the counter was started: bucket i has those of up to 2^(3 + i) us, the last
// one all that are longer. While not all events are looked at, a mean stands for several.
using RunQueueHistogram = std::array<std::uint64_t, RUN_QUEUE_BUCKETS>;

class RunQueueCounter : public CgroupCounter {
 public:
  virtual RunQueueHistogram histogram(CgroupId container) const = 0;
};

// Counts from now on. `tier`: "tp_btf" or "raw_tp", empty for the first that works. Errors:
// unsupported (no type information), denied (it takes CAP_BPF and CAP_PERFMON), and what the kernel
// says besides. `room`: cgroups that have running threads.
Result<std::unique_ptr<RunQueueCounter>> start_run_queue_counter(std::uint32_t room,
                                                                 std::string_view tier = "");

}  // namespace cgphase
