// What runs taught, on its way into the database, and what earlier runs did, on its way out. The
// sum is made by the thread that owns the file: what the agent has of an image may be less.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "collectors/cgroup_id.h"
#include "model/bursts.h"

namespace cgphase {

// Runs that ended and are not yet asked to be added to what the database has.
struct TaughtRuns {
  struct Run {
    std::string key;
    nlohmann::json learned;  // of the pipeline
    bool counted = false;    // in the agent's copy already
  };
  struct Bursts {
    std::string image;
    RunBursts run;
    bool counted = false;
  };
  std::vector<Run> runs;
  std::vector<Bursts> bursts;
  bool empty() const { return runs.empty() && bursts.empty(); }
};

// Images that containers of now are to hear of.
struct WantedPriors {
  std::map<std::string, std::vector<CgroupId>> learned;  // by key
  std::set<std::string> bursts;                          // images
  bool empty() const { return learned.empty() && bursts.empty(); }
};

}  // namespace cgphase
