// Events that are few beside what they cost themselves: requests to block devices (block.bpf.c) and
// segments that TCP sends again (tcp.bpf.c).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "collectors/ebpf/cgroup_counter.h"

namespace cgphase {

// They count from now on. `tier`: "tp_btf" or "raw_tp", empty for the first that works. Errors:
// unsupported (no type information), denied (it takes CAP_BPF and CAP_PERFMON), and what the kernel
// says besides. `room`: cgroups with such events.
//
// Block devices also: unsupported where the io controller is not in the hierarchy of `paths`, for
// then requests belong to cgroups of another one.
Result<std::unique_ptr<CgroupCounter>> start_block_counter(const CgroupPaths& paths,
                                                           std::uint32_t room,
                                                           std::string_view tier = "");
Result<std::unique_ptr<CgroupCounter>> start_tcp_counter(std::uint32_t room,
                                                         std::string_view tier = "");

}  // namespace cgphase
