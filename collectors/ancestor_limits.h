// The limits of the ancestors of containers: of slices, of enclosing containers, and of the root,
// which has limits if it is the root of a cgroup namespace. A quota counts only up to the lowest
// one above it (Documentation/admin-guide/cgroup-v2.rst, "CPU"). Of memory.max and memory.high the
// lower counts: the kernel grants no more than either.
#pragma once

#include <map>

#include "cgroupfs/cgroup_id.h"
#include "collectors/sample.h"

namespace cgphase {

class AncestorLimitsReader {
 public:
  // `root_fd` must outlive this object; -1 means no limits.
  explicit AncestorLimitsReader(int root_fd) : root_fd_(root_fd) {}

  // Forgets all values, so that they are read again.
  void forget() { known_.clear(); }
  // The resources that the cgroup at `path` and its ancestors grant. An empty path is the root. A
  // file that cannot be read sets no limit.
  AncestorLimits within(const CgroupPath& path);

 private:
  AncestorLimits read(const CgroupPath& path) const;

  int root_fd_;
  std::map<CgroupPath, AncestorLimits> known_;
};

}  // namespace cgphase
