// Where a process lies in cgroup v2, by the paths that containers have: below the root that is
// watched, which may lie below the mount.
#pragma once

#include <string>
#include <string_view>

#include "cgroupfs/cgroup_id.h"

namespace cgphase {

// `path` as it is below `root`, "/" for `root` itself; empty for one outside, and for none.
inline CgroupPath path_below(std::string_view path, std::string_view root) {
  if (path.empty() || !path.starts_with(root)) return {};
  path.remove_prefix(root.size());
  if (path.empty()) return "/";
  return path.front() == '/' ? CgroupPath(path) : CgroupPath();
}

// What the kernel calls the directory `cgroup_root` in /proc/PID/cgroup, by mountinfo of this
// process below `proc_root`: "/a/b". Empty where it is the top, or nothing tells: a plain
// directory. It holds as long as the mount does.
CgroupPath kernel_path_of_root(const std::string& proc_root, const std::string& cgroup_root);

// The cgroup v2 path of a process, whose directory in /proc `process` is, from the top; empty where
// it is not to be had.
CgroupPath cgroup_of_process(const std::string& process);

}  // namespace cgphase
