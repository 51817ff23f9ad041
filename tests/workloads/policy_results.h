// The results of the policies on one set of executions: the numbers of results.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lab/replay/comparison.h"
#include "lab/replay/replay.h"
#include "tests/workloads/result_sets.h"

namespace cgphase::workloads {

struct ResultEngines {
  std::shared_ptr<const PhaseEngine> ours, ai4dl;  // ai4dl: null if its model is missing
  // The same policy with phases from other models, by the name of the difference.
  std::vector<std::pair<std::string, std::shared_ptr<const PhaseEngine>>> ablations;
};

// Results of our policy with the phases of another model, or without earlier runs.
struct Ablation {
  std::string name;
  Sweep sweep;
};

struct SetResults {
  const ResultSet* set = nullptr;
  std::vector<ContenderResult> shipped;  // all as published, in the order of policy_names()
  Sweep controls;                        // hold and sliding over their parameters
  std::vector<Sweep> ours;               // phase, proactive, over their risk
  std::vector<Sweep> ai4dl;              // ai4dl-phase, ai4dl-phase-compat, over their margin
  // Of the first of `ours`, over its risk: each model, then ours without earlier runs.
  std::vector<Ablation> ablations;
  // The first five minutes with one known earlier run: policies by name.
  std::vector<std::pair<std::string, ContenderResult>> cold_start;
};

// Closed loop, a decision at each sample. AI4DL's statistics come from the set's training
// executions. If there is no training, they come from the replayed ones, which is in AI4DL's
// favour. Errors: those of replay().
Result<SetResults> play_set(const ResultSet& set, const ResultEngines& engines);

inline constexpr double kColdStartSeconds = 300;

}  // namespace cgphase::workloads
