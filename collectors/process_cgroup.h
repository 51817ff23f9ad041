// Finds the cgroup v2 path of a process. Paths begin at the watched root, which may be below the
// mount, as the paths of containers do.
#pragma once

#include <string>
#include <string_view>

#include "cgroupfs/cgroup_id.h"

namespace cgphase {

// `path` relative to `root`; "/" for `root` itself. Empty for a path outside, and for an empty one.
inline CgroupPath path_below(std::string_view path, std::string_view root) {
  if (path.empty() || !path.starts_with(root)) return {};
  path.remove_prefix(root.size());
  if (path.empty()) return "/";
  return path.front() == '/' ? CgroupPath(path) : CgroupPath();
}

// The kernel's path of the directory `cgroup_root` in /proc/PID/cgroup, such as "/a/b", from
// mountinfo of this process below `proc_root`. Empty if it is the top, or if it is a plain
// directory. Valid as long as the mount.
CgroupPath kernel_path_of_root(const std::string& proc_root, const std::string& cgroup_root);

// The cgroup v2 path of a process from the top. `process` is its directory in /proc. Empty if it
// cannot be read.
CgroupPath cgroup_of_process(const std::string& process);

}  // namespace cgphase
