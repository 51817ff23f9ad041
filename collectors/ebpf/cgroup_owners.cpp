#include "collectors/ebpf/cgroup_owners.h"

#include <string_view>

namespace cgphase {

void CgroupOwners::follow(const NodeSample& tick) {
  if (tick.vanished.empty() && tick.appeared.empty()) return;
  for (const CgroupId& id : tick.vanished) {
    const auto found = container_paths_.find(id);
    if (found == container_paths_.end()) continue;
    // Another one may have its path by now.
    const auto at_path = containers_.find(found->second);
    if (at_path != containers_.end() && at_path->second == id) containers_.erase(at_path);
    container_paths_.erase(found);
  }
  for (const ContainerInfo& info : tick.appeared) {
    containers_[info.path] = info.id;
    container_paths_[info.id] = info.path;
    known_[info.id.inode].path = info.path;
  }
  for (auto& [cgroup, known] : known_) {
    // A container that takes the path of one that is gone takes nothing of its cgroups.
    const bool of_the_dead = known.container && !container_paths_.contains(*known.container);
    if (of_the_dead && paths_.gone(cgroup)) known.path.clear();
    known.container = nearest(known.path);
  }
}

std::optional<CgroupId> CgroupOwners::nearest(const CgroupPath& path) const {
  std::string_view rest = path;
  while (!rest.empty()) {
    const auto found = containers_.find(std::string(rest));
    if (found != containers_.end()) return found->second;
    if (rest == "/") return std::nullopt;
    rest = rest.substr(0, rest.rfind('/'));
  }
  return std::nullopt;
}

std::optional<CgroupId> CgroupOwners::owner(std::uint64_t cgroup) {
  if (const auto found = known_.find(cgroup); found != known_.end()) return found->second.container;
  if (known_.size() >= kMostKnown) known_.clear();
  Known& known = known_[cgroup];
  known.path = paths_.find(cgroup);
  if (known.path.empty()) ++unknown_;
  known.container = nearest(known.path);
  return known.container;
}

bool CgroupOwners::bury(std::uint64_t cgroup) {
  if (!paths_.gone(cgroup)) return false;
  known_.erase(cgroup);
  return true;
}

}  // namespace cgphase
