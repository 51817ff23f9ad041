// What the agent and the history still have to exchange: runs on their way to the history, and
// priors that containers wait for.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cgroupfs/cgroup_id.h"
#include "model/bursts.h"
#include "policy/learned_state.h"

namespace cgphase {

// Runs that ended and are not in the history yet.
struct PendingRuns {
  template <class Learned>
  struct Run {
    std::string key;  // the same for all runs that are added up
    Learned learned;
    bool counted = false;  // already in the sum in memory, or nobody needs it there
    bool stored = false;
  };
  std::vector<Run<LearnedState>> runs;
  std::vector<Run<RunBursts>> bursts;
  bool empty() const { return runs.empty() && bursts.empty(); }
};

// What the history is to be asked for.
struct PriorRequests {
  std::map<std::string, std::vector<CgroupId>> learned;  // containers by key
  std::set<std::string> bursts;                          // images
  bool empty() const { return learned.empty() && bursts.empty(); }
  std::size_t containers() const;
  void forget(CgroupId id);
};

}  // namespace cgphase
