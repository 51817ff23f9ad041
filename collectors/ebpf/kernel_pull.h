// Implements CgroupPull with a BPF program (pull.bpf.c).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "collectors/cgroup_pull.h"

namespace cgphase {

// Starts a CgroupPull for the cgroups below `cgroup_root`. It uses the first way that this kernel
// accepts, or the named one: "BPF css iterator", which walks under RCU, or "BPF iterator", which
// locks the mutex of all cgroups. Errors: unsupported, denied, io; the text covers all ways.
Result<std::unique_ptr<CgroupPull>> start_kernel_pull(const std::string& cgroup_root,
                                                      std::size_t room, std::string_view way = {});

}  // namespace cgphase
