// Where the cgroup v2 hierarchy of this host is, and whether limits can be changed there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace cgphase {

struct CgroupRoot {
  std::string path;                      // "/sys/fs/cgroup"; empty where this host has none
  std::vector<std::string> controllers;  // of cgroup v2, as cgroup.controllers lists them
  bool hybrid = false;                   // cpu or memory are on cgroup v1 beside it
  bool can_enforce = false;              // cpu and memory are both here
  bool writable = true;                  // by the user that this process runs as
  std::string reason;                    // where one is false: one sentence with the way out
};

// Without `asked`: what libcgroup finds mounted. With it: that directory, which may also be a plain
// one with a cgroup.controllers file (tests). A host without cgroup v2, and a directory that is
// cgroup v1 or has it mounted below, have no root, and `reason` says so. Call it before threads
// exist, libcgroup reads the mounts once. Errors, each one sentence with the way out: not_found (no
// such directory), unsupported (not a cgroup directory), denied.
Result<CgroupRoot> discover_cgroup_root(const std::optional<std::string>& asked);

// The judgement alone, pure: which controllers are on v2 and which of cpu and memory on v1.
CgroupRoot judge_cgroup_root(std::string path, std::vector<std::string> controllers,
                             const std::vector<std::string>& v1_controllers);

}  // namespace cgphase
