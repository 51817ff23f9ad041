// The root of this host's cgroup v2 hierarchy, and whether limits can be changed there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace cgphase {

struct CgroupRoot {
  std::string path;                      // "/sys/fs/cgroup"; empty if this host has no root
  std::vector<std::string> controllers;  // of cgroup v2, as cgroup.controllers lists them
  bool hybrid = false;                   // cpu or memory is on cgroup v1
  bool can_enforce = false;              // cpu and memory are both on v2
  bool writable = true;                  // by the user that this process runs as
  std::string reason;                    // if a flag is false: one sentence with the remedy
};

// Without `asked`, takes the mount that libcgroup finds. With it, takes that directory, which may
// also be a plain one with a cgroup.controllers file, as in tests. If the host has no cgroup
// v2, or the directory is cgroup v1 or has v1 mounted below it, the root is empty and `reason` says
// why. Call this before you start threads: libcgroup reads the mounts once. Errors, each one
// sentence with the remedy: not_found (no such directory), unsupported (not a cgroup directory),
// denied.
Result<CgroupRoot> discover_cgroup_root(const std::optional<std::string>& asked);

// The pure part: judges by the controllers that are on v2 and those that are on v1.
CgroupRoot judge_cgroup_root(std::string path, std::vector<std::string> controllers,
                             const std::vector<std::string>& v1_controllers);

}  // namespace cgphase
