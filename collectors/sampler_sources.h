// The sources in `status` for the cgroup tree and for inotify.
#pragma once

#include <cstddef>

#include "collectors/cgroup_tree.h"
#include "collectors/node_sampler.h"
#include "collectors/unit_resets.h"

namespace cgphase {

Source inotify_source(const CgroupTree& tree, const WriteWatch& unit_writes);

// Absent if some cgroups are not followed, with the reason. `waiting`: containers without
// descriptors.
Source cgroups_source(const CgroupTree& tree, std::size_t waiting);

}  // namespace cgphase
