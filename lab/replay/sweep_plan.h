// Which settings a policy is tried with where it is compared. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/replay/contest.h"

namespace cgphase {

struct SweepPlan {
  std::string name;                // of the sweep
  std::vector<Entrant> entrants;
  std::vector<std::string> names;  // of the entrants
  std::optional<std::size_t> shipped;
};

// Ours have one knob, the risk: of 0.02 % to 10 % of the samples, and that of `settings`, which is
// theirs as shipped. The limit and the oracles are as they are. All others are tried with -30 % to
// +100 % on what they want, and as published.
SweepPlan sweep_plan(const PolicySpec& policy, const ReplaySettings& settings);

// Every control, swept over its parameters (policy/baselines/control_sweep.h): nothing of it is
// shipped.
inline constexpr std::string_view kControls = "controls";
SweepPlan control_plan(const ReplaySettings& settings);

bool is_ours(const PolicySpec& policy);
// static and the oracles have nothing to be swept over.
bool is_fixed(const PolicySpec& policy);

}  // namespace cgphase
