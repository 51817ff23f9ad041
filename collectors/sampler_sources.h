// Sources in `status`: the cgroup tree, inotify, kernel files, and the files of engines.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectors/cgroup_tree.h"
#include "collectors/node_sampler.h"
#include "collectors/tracked_container.h"
#include "collectors/unit_resets.h"

namespace cgphase {

Source inotify_source(const CgroupTree& tree, const WriteWatch& unit_writes);

// Absent if some cgroups are not followed, with the reason. `waiting`: containers without
// descriptors.
Source cgroups_source(const CgroupTree& tree, std::size_t waiting);

// Absent if files of containers could not be opened for lack of descriptors.
Source descriptors_source(const TrackedList& containers);

// Reports truncated files: their number, and the first.
Source kernel_files_source(const TrackedList& containers, std::uint64_t impossible_samples);

// Absent if labels of some container are not known.
Source engine_files_source(const UnlabelledMap& containers);

}  // namespace cgphase
