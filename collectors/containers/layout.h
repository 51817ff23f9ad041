// Which of several cgroups below one another is the container, and what it is called.
#pragma once

#include <string>

#include "cgroupfs/cgroup_id.h"
#include "collectors/containers/container_info.h"
#include "collectors/containers/recognise.h"

namespace cgphase {

// Whether processes are listed in `file` ("cgroup.procs"), relative to a cgroup.
bool has_processes(int directory_fd, const char* file);

// A container is its outermost cgroup, and what it makes below itself is its own affair. Of two
// layouts it is the inner one: crun's `container` below the scope, and one in a pod, whose cgroup
// looks like a container of Docker's. The root of a container can make either by name. It is none
// where the outer cgroup has processes of its own, or is known to an engine, or alone has limits.
bool stands_for_parent(const CgroupPath& path, const Recognised& who, int directory_fd,
                       const std::string& engine_root);

// The outermost container of an engine's above `path`; empty: none.
CgroupPath container_around(const CgroupPath& path);

// `for_parent`: it stands for its parent. Reads the engines' files and the cgroup's attributes.
ContainerInfo describe_container(CgroupId id, const CgroupPath& path, Recognised&& who,
                                 bool for_parent, int directory_fd,
                                 const std::string& engine_root);

}  // namespace cgphase
