// Who a cgroup is, from its path alone. The table of paths stands in docs/operations.md.
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
  std::string name;       // what the path tells: the short id, an LXC or machine name, a unit
  std::string hands_off;  // as in ContainerInfo
  // crun's cgroup inside the scope: it holds the limits, so it stands for its parent.
  bool inside_scope = false;
  // As one of a pod of Podman's lies: its parent looks like a container, and is the pod unless an
  // engine knows that one.
  bool in_pod = false;
};

// What the cgroup at `path` is; nothing when it is no container: the slices between, an engine's
// own monitors, cgroups inside a container, plain services that no `include` pattern names.
// A pattern with '/' is matched against the whole path and '*' stops at '/'; one without is
// matched against the last element. A backslash is itself, as unit names hold "\x2d".
std::optional<Recognised> recognise_path(std::string_view path,
                                         std::span<const std::string> include);

// The path itself is that of an engine's container, whatever lies above it. A job of Slurm's is
// none here.
bool is_engine_container(std::string_view path);

// The cgroup at `path`, or one above it, is a container. A job of Slurm's is none here: its
// processes are the host's own.
bool is_in_container(std::string_view path);

// The last element of `path` is a unit whose limits systemd may rewrite.
bool is_systemd_unit(std::string_view path);

}  // namespace cgphase
