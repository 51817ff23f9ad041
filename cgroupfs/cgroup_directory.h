// Facts about a directory of the cgroup file system: its identity, its hierarchy and whether it
// still exists. Memory is allocated only for errors.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "cgroupfs/cgroup_id.h"

namespace cgphase {

// The hierarchy that contains a directory. A plain directory, as in tests, is `none`.
enum class Hierarchy : std::uint8_t { none, v1, v2 };
// Also `none` if the directory does not exist.
Hierarchy hierarchy_of(int directory_fd);
Hierarchy hierarchy_of(const std::string& path);
inline bool is_cgroup2(int directory_fd) { return hierarchy_of(directory_fd) == Hierarchy::v2; }

// Device and inode of the directory. Errors: those of fstat() and stat().
Result<CgroupId> identify(int directory_fd);
Result<CgroupId> identify(const std::string& path);

// False once the directory behind the descriptor is removed. If the check itself fails, for example
// for lack of memory, the directory counts as alive, so that no lease is lost.
bool directory_alive(int directory_fd);

}  // namespace cgphase
