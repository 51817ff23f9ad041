// Identity and path of a cgroup.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace cgphase {

// (device, inode) of the cgroup directory, read with fstat() on an open descriptor. The inode is
// the kernel's cgroup id (kernfs). Unlike a path or a pid, it is not reused until the machine
// reboots.
struct CgroupId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend auto operator<=>(const CgroupId&, const CgroupId&) = default;
};

// Path below the cgroup v2 root. It begins with '/'; the root itself is "/". A name may contain
// every byte except newline and slash, so call escape_name() before you show it.
using CgroupPath = std::string;

}  // namespace cgphase
