// The names and the engine of a container. All text here is foreign bytes: escape it in all output.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cgroupfs/cgroup_id.h"

namespace cgphase {

enum class Engine : std::uint8_t {
  docker, podman, containerd, crio, lxc, incus, nspawn, slurm, kubernetes,
  service,  // a plain systemd unit, by opt-in
  cgroup,   // any other cgroup, by opt-in pattern
  qemu,     // a virtual machine of Proxmox VE, only observed
  nomad,    // a task of Nomad, only observed
};

// The name of the source in `status` that says whose `labels_unknown` is set.
inline constexpr const char* kEngineFilesSource = "engine files";

struct ContainerInfo {
  CgroupId id;
  // The cgroup whose files are read and whose limits are written: the innermost one that has the
  // container's limits (crun: libpod-ID.scope/container; Quadlet: the unit X.service).
  CgroupPath path;
  Engine engine = Engine::cgroup;
  std::string engine_id;  // the engine's own id (64 hex digits, an LXC name, a unit name)
  std::string name;       // the user's name for it; short id or last path element if unknown
  std::string image;      // empty if unknown
  std::map<std::string, std::string> labels;
  // The owner with whom it shares quotas and the host's budget: "uid 1000" whose delegated subtree
  // contains it, else the path of the cgroup around it.
  std::string owner = {};
  bool systemd_unit = false;  // `path` is itself a systemd unit: systemd may rewrite its limits
  // True if only root, or the user of this process, could create the cgroup here. Otherwise an
  // ordinary user can give it the name of another container.
  bool made_by_root = false;
  // Why its labels are not known; empty if they are, or if its engine has none. They may forbid
  // cgphase to act, so that no pattern of the configuration enforces it.
  std::string labels_unknown = {};
  // Why cgphase must never write here (managed by the kubelet, an engine, our own unit); empty if
  // it may.
  std::string hands_off;
};

}  // namespace cgphase
