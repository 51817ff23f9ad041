// What the safety rules learned from failures. It outlives containers and the daemon.
#pragma once

#include "base/clock.h"
#include "policy/safety/live_runs.h"
#include "policy/safety/oom_memory.h"
#include "policy/safety/quarantines.h"

namespace cgphase {

struct SafetyMemory {
  OomMemory ooms;           // by image
  Quarantines quarantines;  // by container
  LiveRuns runs = {};       // by cgroup

  // Adds the memory of earlier runs. The stricter entry wins.
  void add(const SafetyMemory& earlier, WallTime now);
  // Call it once per tick. Returns true if a value that should be stored changed.
  bool follow_clock(WallTime now);
};

}  // namespace cgphase
