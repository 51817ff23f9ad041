// Decides which of several nested cgroups is the container, and describes it.
#pragma once

#include <optional>
#include <string>

#include "cgroupfs/cgroup_id.h"
#include "collectors/containers/container_info.h"
#include "collectors/containers/engine_files.h"
#include "collectors/containers/recognise.h"

namespace cgphase {

// True if `file` ("cgroup.procs"), relative to a cgroup, lists processes.
bool has_processes(int directory_fd, const char* file);

// What cgroup.events of the cgroup `below` says, "." or relative to the directory; nothing if it
// cannot be read.
std::optional<bool> is_populated(int directory_fd, const std::string& below);

// A container is its outermost cgroup; cgroups that it creates below are its own matter. In two
// layouts the inner cgroup represents it: crun's below the scope, and a container in a pod whose
// cgroup looks like a container of Docker. The root of a container can create either name. So the
// inner cgroup does not count if the outer one has processes, is known to an engine, or alone has
// limits. crun's is called `container`, unless an annotation names it. With another name it counts
// only if it has the limits.
bool represents_parent(const CgroupPath& path, const Recognised& match, int directory_fd,
                       EngineFiles& files);

// Whether the unit around a container has the limits and the container has none: then the unit's
// cgroup is read and written.
bool unit_has_limits(int directory_fd);

// Recognises a container of containerd whose name and namespace can be any: /NAMESPACE/NAME.
std::optional<Recognised> recognise_task(const CgroupPath& path, const EngineFiles& files);

// The path of the cgroup that LXC would have used for a container in `path`, if it used another
// because that one was left over: lxc.payload.web for lxc.payload.web-1. Empty if `path` is its own
// name.
CgroupPath path_left_over(const CgroupPath& path, const Recognised& match, int root_fd,
                          const EngineFiles& files);

// The outermost engine container above `path`; empty if there is none.
CgroupPath container_around(const CgroupPath& path);

// `for_parent`: it represents its parent. Reads the engines' files and the cgroup's attributes.
ContainerInfo describe_container(CgroupId id, const CgroupPath& path, Recognised&& match,
                                 bool for_parent, int directory_fd, EngineFiles& files);

}  // namespace cgphase
