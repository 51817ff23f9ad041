// The row of an image in the history: what its runs learned. It also has what runs learned that
// have not ended, because the daemon may be killed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "policy/learned_state.h"

namespace cgphase {

struct StoredRuns {
  struct Unended {
    std::string daemon;  // that observed these runs
    LearnedState learned;
  };
  LearnedState ended;
  std::optional<Unended> unended;

  // Whether another daemon observed the unended runs. It was killed before they ended.
  bool has_lost_runs(const std::string& daemon) const;
  // The ended runs and the lost ones. `daemon` still observes the others.
  LearnedState without_live_runs(const std::string& daemon) const;
};

// The JSON of `ended` (policy/learned_json.h), with {"unended":{"daemon", "learned"}} added.
nlohmann::json stored_runs_to_json(const StoredRuns& runs);
// A damaged part is empty.
StoredRuns stored_runs_from_json(nlohmann::json row);

}  // namespace cgphase
