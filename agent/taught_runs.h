// What runs taught, on its way into the database, and what earlier runs did, on its way out. The
// sum is made by the thread that owns the file: what the agent has of an image may be less.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cgroupfs/cgroup_id.h"
#include "model/bursts.h"

namespace cgphase {

// Runs that ended and are not yet asked to be added to what the database has.
struct TaughtRuns {
  template <class Taught>
  struct Run {
    std::string key;  // what runs of the same image share
    Taught taught;
    bool counted = false;  // in the agent's copy already, beside what the database has
    bool stored = false;
  };
  std::vector<Run<nlohmann::json>> runs;  // of the pipeline
  std::vector<Run<RunBursts>> bursts;
  bool empty() const { return runs.empty() && bursts.empty(); }
};

// The agent's copy of what runs of an image taught. Until it is whole it lacks what the database
// has, and is made anew as soon as that is read.
struct KnownRuns {
  nlohmann::json taught;
  bool whole = false;
};

// Images that containers of now are to hear of.
struct WantedPriors {
  std::map<std::string, std::vector<CgroupId>> learned;  // by key
  std::set<std::string> bursts;                          // images
  bool empty() const { return learned.empty() && bursts.empty(); }
};

}  // namespace cgphase
