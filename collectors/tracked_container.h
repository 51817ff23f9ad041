// A container that NodeSampler reads, with all that it keeps between ticks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cgroupfs/cgroup_id.h"
#include "collectors/cgroup_files.h"
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

inline CgroupId id_of(const std::unique_ptr<Tracked>& tracked) { return tracked->id; }

}  // namespace cgphase
