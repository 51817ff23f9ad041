#include "collectors/ebpf/cgroup_owners.h"

#include <iterator>
#include <utility>

namespace cgphase {

void CgroupOwners::follow(const NodeSample& tick) {
  if (!containers_.follow(tick)) return;
  ++generation_;
  for (const ContainerInfo& info : tick.appeared) known_[info.id.inode].path = info.path;
  for (auto at = known_.begin(); at != known_.end();) {
    Known& known = at->second;
    // A new container with the path of a removed one does not get its cgroups.
    const bool orphaned = known.container && !containers_.has(*known.container);
    if (orphaned && paths_.gone(at->first)) {
      known.path.clear();
      known.gone = true;
    }
    known.container = containers_.nearest(known.path);
    const bool forgotten = known.gone && known.changes++ == kKeptChanges;
    at = forgotten ? known_.erase(at) : std::next(at);
  }
}

std::optional<CgroupId> CgroupOwners::owner(std::uint64_t cgroup) {
  if (const auto found = known_.find(cgroup); found != known_.end()) return found->second.container;
  if (known_.size() >= kMostKnown) known_.clear();
  Known& known = known_[cgroup];
  known.path = paths_.find(cgroup);
  // A cgroup outside the root has no path either, but is not gone.
  if (known.path.empty() && paths_.gone(cgroup)) ++unknown_;
  known.container = containers_.nearest(known.path);
  return known.container;
}

bool CgroupOwners::drop_if_gone(std::uint64_t cgroup) {
  if (dropped_.contains(cgroup)) return true;
  if (!paths_.gone(cgroup)) return false;
  dropped_.insert(cgroup);
  return true;
}

void CgroupOwners::end_sweep() {
  for (const std::uint64_t cgroup : dropped_before_)
    if (!dropped_.contains(cgroup)) known_.erase(cgroup);
  dropped_before_ = std::exchange(dropped_, {});
}

}  // namespace cgphase
