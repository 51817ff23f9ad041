// The limits of the cgroups around containers: of slices, of enclosing containers, and of the root,
// which has limits where it is that of a cgroup namespace. A quota counts only as far as the lowest
// one above it (Documentation/admin-guide/cgroup-v2.rst, "CPU"). Of memory the lower of memory.max
// and memory.high counts: the kernel denies what is above either.
#pragma once

#include <map>

#include "cgroupfs/cgroup_id.h"
#include "collectors/sample.h"

namespace cgphase {

class GrantedLimits {
 public:
  // `root_fd` outlives it; -1: there are none.
  explicit GrantedLimits(int root_fd) : root_fd_(root_fd) {}

  // All are read anew from now on.
  void forget() { known_.clear(); }
  // What the cgroup at `path` and those above it leave; empty is the root. What cannot be read
  // limits nothing.
  Granted within(const CgroupPath& path);

 private:
  Granted read(const CgroupPath& path) const;

  int root_fd_;
  std::map<CgroupPath, Granted> known_;
};

}  // namespace cgphase
