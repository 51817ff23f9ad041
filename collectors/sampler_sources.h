// Sources in `status`: the cgroup tree, inotify, kernel files, and the files of engines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collectors/cgroup_files.h"
#include "collectors/cgroup_tree.h"
#include "collectors/node_sampler.h"
#include "collectors/unit_resets.h"

namespace cgphase {

Source inotify_source(const CgroupTree& tree, const WriteWatch& unit_writes);

// Absent if some cgroups are not followed, with the reason. `waiting`: containers without
// descriptors.
Source cgroups_source(const CgroupTree& tree, std::size_t waiting);

// Kernel files that were truncated: their number, and the first.
struct CutFiles {
  std::size_t count = 0;
  std::string first;
  void add(const CgroupPath& path, KernelFile file);
};
Source kernel_files_source(const CutFiles& cut, std::uint64_t impossible_samples);

// A container whose labels are not known, and why (ContainerInfo::labels_unknown).
struct UnknownLabels {
  std::string name, why;
};
Source engine_files_source(const std::vector<const UnknownLabels*>& unknown);

}  // namespace cgphase
