// Finds the container of a cgroup: the cgroup itself, or the nearest container above it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "cgroupfs/cgroup_id.h"
#include "collectors/container_paths.h"
#include "collectors/ebpf/cgroup_paths.h"
#include "collectors/sample.h"

namespace cgphase {

// A cgroup that was seen once keeps its container after its removal. Owned and used by one thread.
class CgroupOwners {
 public:
  explicit CgroupOwners(const std::string& cgroup_root) : paths_(cgroup_root) {}

  // Updates the containers from a tick.
  void follow(const NodeSample& tick);

  // Absent if the cgroup is in no container, or was removed before the first call.
  std::optional<CgroupId> owner(std::uint64_t cgroup);

  // If this number changes, earlier results of owner() may be outdated.
  std::uint64_t generation() const { return generation_; }

  // Number of cgroups that were removed before their first lookup.
  std::uint64_t unknown() const { return unknown_; }

  // True if a cgroup is gone. Its entry is then deleted at the second end_sweep() after the last
  // call for it. Until then, its remaining counts still belong to its container.
  bool drop_if_gone(std::uint64_t cgroup);
  // Call it after all counters have read and called drop_if_gone().
  void end_sweep();

  const CgroupPaths& paths() const { return paths_; }

  // Maximum number of known cgroups. With one more, all are looked up again.
  static constexpr std::size_t kMostKnown = 131072;

 private:
  // The kernel may still count for a removed cgroup. So its entry is kept for this many changes.
  static constexpr int kKeptChanges = 10;
  struct Known {
    CgroupPath path;  // empty: unknown
    std::optional<CgroupId> container;
    bool gone = false;  // removed with its container
    int changes = 0;    // of containers since then
  };
  CgroupPaths paths_;
  ContainerPaths containers_;
  std::map<std::uint64_t, Known> known_;
  std::set<std::uint64_t> dropped_, dropped_before_;  // in this sweep, and in the previous one
  std::uint64_t unknown_ = 0, generation_ = 1;
};

}  // namespace cgphase
