// Decides which of several nested cgroups is the container, and describes it.
#pragma once

#include <string>

#include "cgroupfs/cgroup_id.h"
#include "collectors/containers/container_info.h"
#include "collectors/containers/recognise.h"

namespace cgphase {

// True if `file` ("cgroup.procs"), relative to a cgroup, lists processes.
bool has_processes(int directory_fd, const char* file);

// A container is its outermost cgroup; cgroups that it creates below are its own matter. In two
// layouts the inner cgroup represents it: crun's `container` below the scope, and a container in a
// pod whose cgroup looks like a container of Docker. The root of a container can create either
// name. So the inner cgroup does not count if the outer one has processes, is known to an engine,
// or alone has limits.
bool represents_parent(const CgroupPath& path, const Recognised& match, int directory_fd,
                       const std::string& engine_root);

// The outermost engine container above `path`; empty if there is none.
CgroupPath container_around(const CgroupPath& path);

// `for_parent`: it represents its parent. Reads the engines' files and the cgroup's attributes.
ContainerInfo describe_container(CgroupId id, const CgroupPath& path, Recognised&& match,
                                 bool for_parent, int directory_fd,
                                 const std::string& engine_root);

}  // namespace cgphase
