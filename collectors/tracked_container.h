// The containers that NodeSampler reads, and the cgroups that may become one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cgroupfs/cgroup_id.h"
#include "collectors/cgroup_files.h"
#include "collectors/cgroup_tree.h"
#include "collectors/sample.h"
#include "collectors/sample_filter.h"
#include "collectors/unit_resets.h"

namespace cgphase {

struct Tracked {
  CgroupId id;
  CgroupPath path;
  CgroupFiles files;
  UnitResets resets;
  int watch;        // in DirectoryWrites; -1: all files are read at every tick
  bool for_parent;  // represents the cgroup above it
  MonotonicTime since;
  bool own_processes;  // at first sight: it does not contain containers
  std::string quota;   // the owner whose quota it uses; empty: none
  bool detailed = true;  // its limits may be changed
  AncestorLimits ancestor_limits = {};
  std::optional<std::uint32_t> place = {};  // place in PullSession
  SampleFilter filter = {};
};
using TrackedList = std::vector<std::unique_ptr<Tracked>>;

// A container whose labels are not known, and why (ContainerInfo::labels_unknown).
struct Unlabelled {
  std::string name, why;
};
using UnlabelledMap = std::map<CgroupId, Unlabelled>;

// A cgroup that may become a container.
struct Settling {
  TreeChange::Appeared cgroup;
  MonotonicTime since;
};

// A cgroup that is not tracked, because inner cgroups represent it.
struct Represented {
  std::size_t by = 0;            // number of inner cgroups
  std::optional<CgroupId> id{};  // its own id, if it was found
};

struct EmptyCgroup {
  CgroupPath path;
  bool reported;  // its first process is reported; else it is checked at each sweep
};

// A unit of systemd that represents the container in it.
struct Unit {
  CgroupId id;
  CgroupPath path;
};

inline CgroupId id_of(const std::unique_ptr<Tracked>& tracked) { return tracked->id; }

}  // namespace cgphase
