// What `status` reports of the tree of cgroups and of inotify.
#pragma once

#include <cstddef>

#include "collectors/cgroup_tree.h"
#include "collectors/node_sampler.h"
#include "collectors/unit_resets.h"

namespace cgphase {

Source inotify_source(const CgroupTree& tree, const WriteWatch& unit_writes);

// Off where some cgroups are not followed, and why. `waiting`: containers without descriptors.
Source cgroups_source(const CgroupTree& tree, std::size_t waiting);

}  // namespace cgphase
