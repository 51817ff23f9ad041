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
    // A container that takes the path of one that is gone takes nothing of its cgroups.
    const bool of_the_dead = known.container && !containers_.has(*known.container);
    if (of_the_dead && paths_.gone(at->first)) {
      known.path.clear();
      known.gone = true;
    }
    known.container = containers_.nearest(known.path);
    const bool forgotten = known.gone && known.looks++ == kLooksAtTheGone;
    at = forgotten ? known_.erase(at) : std::next(at);
  }
}

std::optional<CgroupId> CgroupOwners::owner(std::uint64_t cgroup) {
  if (const auto found = known_.find(cgroup); found != known_.end()) return found->second.container;
  if (known_.size() >= kMostKnown) known_.clear();
  Known& known = known_[cgroup];
  known.path = paths_.find(cgroup);
  // One outside the root has no path either, and is not gone.
  if (known.path.empty() && paths_.gone(cgroup)) ++unknown_;
  known.container = containers_.nearest(known.path);
  return known.container;
}

bool CgroupOwners::bury(std::uint64_t cgroup) {
  if (buried_.contains(cgroup)) return true;
  if (!paths_.gone(cgroup)) return false;
  buried_.insert(cgroup);
  return true;
}

void CgroupOwners::end_sweep() {
  for (const std::uint64_t cgroup : buried_before_)
    if (!buried_.contains(cgroup)) known_.erase(cgroup);
  buried_before_ = std::exchange(buried_, {});
}

}  // namespace cgphase
