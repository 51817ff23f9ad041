// Finds the path of a cgroup that the kernel names by its inode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/fd.h"
#include "cgroupfs/cgroup_id.h"

namespace cgphase {

// Opens a cgroup by file handle, as a file server does. The handle is the inode. A pid could be
// reused by now. Needs CAP_DAC_READ_SEARCH. Owned and used by one thread.
class CgroupPaths {
 public:
  explicit CgroupPaths(const std::string& root);

  // Empty if it is gone or unknown. The last result is cached, because the same cgroup is often
  // asked for again.
  const CgroupPath& find(std::uint64_t inode) {
    if (inode != std::exchange(inode_, inode)) path_ = lookup(inode);
    return path_;
  }

  // True if the kernel reports that no cgroup has this inode any more. False if that is unknown,
  // and for 0, which no cgroup has: packets without a socket count for it.
  bool gone(std::uint64_t inode) const;

  // Number of cgroups including the root, up to `most`, by cgroup.stat of the root. A map with one
  // record per cgroup must have that much room.
  std::size_t count(std::size_t most) const;

  int root_fd() const { return root_.get(); }  // -1 if it could not be opened

 private:
  int open(std::uint64_t inode) const;
  CgroupPath lookup(std::uint64_t inode) const;

  Fd root_;
  std::string root_path_;
  std::uint64_t inode_ = 0;  // 0: no cgroup has it
  CgroupPath path_;
};

}  // namespace cgphase
