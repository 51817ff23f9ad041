// Recognises what a cgroup is from its path alone. docs/operations.md has the table of paths.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cgroupfs/cgroup_id.h"
#include "collectors/containers/container_info.h"

namespace cgphase {

struct Recognised {
  Engine engine = Engine::cgroup;
  std::string engine_id;
  std::string name;       // name from the path: the short id, an LXC or machine name, a unit
  std::string hands_off;  // as in ContainerInfo
  // crun's cgroup inside the scope. It has the limits, so that it represents its parent.
  bool inside_scope = false;
  // A container that shares the cgroup of its unit with Podman's monitor (Quadlet,
  // --cgroups=split). The limits are usually those of the unit.
  bool in_unit = false;
  // Possibly in a pod of Podman. Its parent looks like a container, and is the pod unless an engine
  // knows that container.
  bool in_pod = false;
};

// Recognises the cgroup at `path`; absent if it is no container. These are slices, monitors of
// engines, cgroups inside a container, and plain services that no `include` pattern names. A
// pattern with '/' is matched against the whole path, and '*' stops at '/'. A pattern without '/'
// is matched against the last element. A backslash is literal, because unit names contain "\x2d".
std::optional<Recognised> recognise_path(std::string_view path,
                                         std::span<const std::string> include);

// True if the path itself is that of an engine's container, whatever is above it. Jobs of Slurm and
// tasks of Nomad do not count here.
bool is_engine_container(std::string_view path);

// True if the cgroup at `path`, or one above it, is a container. Jobs of Slurm and tasks of Nomad
// do not count here, because their processes are the host's own.
bool is_in_container(std::string_view path);

// True if the last element of `path` is a unit whose limits systemd may rewrite.
bool is_systemd_unit(std::string_view path);

}  // namespace cgphase
