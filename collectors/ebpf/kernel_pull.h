// CgroupPull by a BPF program (pull.bpf.c).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "collectors/cgroup_pull.h"

namespace cgphase {

// Of the cgroups below `cgroup_root`, by the first way that this kernel takes, or by the one named:
// "BPF css iterator", which walks under RCU, or "BPF iterator", which holds the mutex of all
// cgroups meanwhile. Errors: unsupported, denied, io; of all ways.
Result<std::unique_ptr<CgroupPull>> start_kernel_pull(const std::string& cgroup_root,
                                                      std::size_t room, std::string_view way = {});

}  // namespace cgphase
