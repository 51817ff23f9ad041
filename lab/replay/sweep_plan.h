// Settings to try a policy with in a comparison. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/replay/contest.h"

namespace cgphase {

struct SweepPlan {
  std::string name;                // name of the sweep
  std::vector<Entrant> entrants;
  std::vector<std::string> names;  // names of the entrants
  std::optional<std::size_t> shipped;
};

// Our policies have one knob, the risk: 0.02 % to 10 % of the samples, and that of `settings`, the
// shipped one. The limit and the oracles stay as they are. All others are tried with -30 % to +100
// % on their recommendation, and as published.
SweepPlan sweep_plan(const PolicySpec& policy, const ReplaySettings& settings);

// Every control, swept over its parameters (policy/baselines/control_sweep.h). None of its settings
// is shipped.
inline constexpr std::string_view kControls = "controls";
SweepPlan control_plan(const ReplaySettings& settings);

bool is_ours(const PolicySpec& policy);
// static and the oracles have no settings to sweep.
bool is_fixed(const PolicySpec& policy);

}  // namespace cgphase
