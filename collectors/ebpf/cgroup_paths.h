// Where a cgroup lies that the kernel names by its inode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/fd.h"
#include "cgroupfs/cgroup_id.h"

namespace cgphase {

// Opened as a file server does, by the handle that is the inode, for a pid may be somebody else's
// by now. Takes CAP_DAC_READ_SEARCH. Owned and used by one thread.
class CgroupPaths {
 public:
  explicit CgroupPaths(const std::string& root);

  // Empty where it is gone or cannot be known. The last answer is kept: who is asked for once is
  // asked for again.
  const CgroupPath& find(std::uint64_t inode) {
    if (inode != std::exchange(inode_, inode)) path_ = look(inode);
    return path_;
  }

  // Whether the kernel says that no cgroup has this inode any more. False where it says nothing,
  // and of 0, which none ever had: packets without a socket are counted for it.
  bool gone(std::uint64_t inode) const;

  // Of the root and all below it, up to `most`: what a map with one record of each must hold.
  // One that goes meanwhile hides no other; deeper than kMaxCgroupDepth nobody looks.
  std::size_t count(std::size_t most) const;

  int root_fd() const { return root_.get(); }  // -1 where it could not be opened

 private:
  int open(std::uint64_t inode) const;
  CgroupPath look(std::uint64_t inode) const;

  Fd root_;
  std::string root_path_;
  std::uint64_t inode_ = 0;  // no cgroup has it
  CgroupPath path_;
};

}  // namespace cgphase
