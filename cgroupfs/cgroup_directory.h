// What a directory of the cgroup file system is: its identity, its hierarchy, whether it still
// exists. Nothing is allocated unless it fails.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "cgroupfs/cgroup_id.h"

namespace cgphase {

// The hierarchy that a directory lies in. A plain directory (tests) is `none`.
enum class Hierarchy : std::uint8_t { none, v1, v2 };
// `none` also for a directory that does not exist.
Hierarchy hierarchy_of(int directory_fd);
Hierarchy hierarchy_of(const std::string& path);
inline bool is_cgroup2(int directory_fd) { return hierarchy_of(directory_fd) == Hierarchy::v2; }

// Device and inode of the directory. Errors: what fstat() and stat() give.
Result<CgroupId> identify(int directory_fd);
Result<CgroupId> identify(const std::string& path);

// False once the directory behind the descriptor was removed. A check that fails for another
// reason, such as want of memory, counts as alive: it must not cost a lease.
bool directory_alive(int directory_fd);

}  // namespace cgphase
