// Counts events that are rare compared with their own cost: requests to block devices (block.bpf.c)
// and TCP retransmits (tcp.bpf.c).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "collectors/ebpf/cgroup_counter.h"

namespace cgphase {

// They count from now on. `tier` is "tp_btf" or "raw_tp"; empty means the first that works. Errors:
// unsupported (no type information), denied (needs CAP_BPF and CAP_PERFMON), and other errors of
// the kernel. `room` is the number of cgroups with such events.
//
// Block devices also: unsupported if the io controller is not in the hierarchy of `paths`, because
// requests then belong to cgroups of another one.
Result<std::unique_ptr<CgroupCounter>> start_block_counter(const CgroupPaths& paths,
                                                           std::uint32_t room,
                                                           std::string_view tier = "");
Result<std::unique_ptr<CgroupCounter>> start_tcp_counter(std::uint32_t room,
                                                         std::string_view tier = "");

}  // namespace cgphase
