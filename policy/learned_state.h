// What policies learn from the runs of one image. It is passed to later runs of the image as their
// prior.
#pragma once

#include <variant>

#include "policy/phase/learned_phases.h"
#include "policy/phase/learned_usage.h"

namespace cgphase {

// Empty (monostate): nothing was learned. Only policies of the same kind use what was learned.
using LearnedState = std::variant<std::monostate, LearnedPhases, LearnedUsage>;

inline bool is_empty(const LearnedState& learned) {
  return std::holds_alternative<std::monostate>(learned);
}

// Errors: invalid (a member is out of bounds).
Status check(const LearnedState& learned);
// Adds the statistics of one run to the decayed ones of earlier runs. A run that is empty or out of
// bounds changes nothing. Earlier statistics that are out of bounds, or of a policy that cannot use
// those of the run, are dropped.
LearnedState merge_learned(const LearnedState& earlier, const LearnedState& run);

}  // namespace cgphase
