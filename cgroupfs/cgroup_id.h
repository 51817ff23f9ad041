// Who a cgroup is, and where it lies.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace cgphase {

// (device, inode) of the cgroup directory, taken by fstat on a held descriptor. The inode is the
// kernel's cgroup id (kernfs): it is not used again while the machine runs, unlike a path or a pid.
struct CgroupId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend auto operator<=>(const CgroupId&, const CgroupId&) = default;
};

// Path below the cgroup v2 root, beginning with '/', "/" for the root. Bytes, not text: all but
// newline and slash may stand in a name, so escape_name() before it is shown.
using CgroupPath = std::string;

}  // namespace cgphase
