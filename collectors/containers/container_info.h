// What a container is called and who runs it. All text here is foreign bytes: escape at every sink.
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
};

struct ContainerInfo {
  CgroupId id;
  // The cgroup whose files are read and whose limits are written: the innermost one that holds the
  // container's limits (crun: libpod-ID.scope/container).
  CgroupPath path;
  Engine engine = Engine::cgroup;
  std::string engine_id;  // the engine's own id (64 hex digits, an LXC name, a unit name)
  std::string name;       // what the user calls it; short id or last path element where unknown
  std::string image;      // empty where unknown
  std::map<std::string, std::string> labels;
  // Who shares quotas and the host's budget with it: "uid 1000" whose delegated subtree it lies in,
  // else the path of the cgroup around it.
  std::string owner = {};
  bool systemd_unit = false;  // `path` is itself a systemd unit: systemd may rewrite its limits
  // Only root, or the user that runs this process, could create the cgroup here. Otherwise an
  // ordinary user can give its name to another container.
  bool made_by_root = false;
  // Why cgphase must never write here (SAFETY.md law 9: kubelet-managed, an engine, our own unit);
  // empty when it may.
  std::string hands_off;
};

}  // namespace cgphase
