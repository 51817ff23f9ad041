// What the rails learned of things that went wrong, and what outlives containers and daemon.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "policy/safety/live_runs.h"
#include "policy/safety/oom_memory.h"
#include "policy/safety/quarantines.h"

namespace cgphase {

struct RailsMemory {
  OomMemory ooms;           // by image
  Quarantines quarantines;  // by container
  LiveRuns runs = {};       // by cgroup

  // What is remembered of both; the stricter one counts.
  void add(const RailsMemory& earlier, WallTime now);
  // Once per tick. True where something changed that should outlive the daemon.
  bool follow_clock(WallTime now);
  // That of OomMemory, and `quarantines` and `runs` in it.
  nlohmann::json to_json() const;
  // One that lacks either is of an older program. Errors: invalid, naming what is wrong.
  static Result<RailsMemory> from_json(const nlohmann::json& json);
};

}  // namespace cgphase
