// Which container a cgroup belongs to: the one that it is, or the nearest one above it.
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

// A cgroup that was seen once keeps its container when it is gone. Owned and used by one thread.
class CgroupOwners {
 public:
  explicit CgroupOwners(const std::string& cgroup_root) : paths_(cgroup_root) {}

  // Takes note of who came and who went.
  void follow(const NodeSample& tick);

  // Nothing where it is in no container, or was gone before it was first asked for.
  std::optional<CgroupId> owner(std::uint64_t cgroup);

  // Another number: what owner() said before may not hold any more.
  std::uint64_t generation() const { return generation_; }

  // Cgroups that were gone before they were first asked for.
  std::uint64_t unknown() const { return unknown_; }

  // Whether a cgroup is gone. If so nothing is kept of it from the second end_sweep() after its
  // last burial on: until then what others have of it, or find of it still, is its container's.
  bool bury(std::uint64_t cgroup);
  // All who count have read and buried.
  void end_sweep();

  const CgroupPaths& paths() const { return paths_; }

  // Cgroups kept at once; with one more all are looked up anew.
  static constexpr std::size_t kMostKnown = 131072;

 private:
  // What the kernel still counts of a cgroup that is gone is not unknown: its number is kept for so
  // many changes more.
  static constexpr int kLooksAtTheGone = 10;
  struct Known {
    CgroupPath path;  // empty: not to be had
    std::optional<CgroupId> container;
    bool gone = false;  // with its container
    int looks = 0;      // since then
  };
  CgroupPaths paths_;
  ContainerPaths containers_;
  std::map<std::uint64_t, Known> known_;
  std::set<std::uint64_t> buried_, buried_before_;  // in this sweep, and in the one before
  std::uint64_t unknown_ = 0, generation_ = 1;
};

}  // namespace cgphase
