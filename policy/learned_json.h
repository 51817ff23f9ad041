// What policies learned, as JSON: in the database of the daemon and in its replies.
//
// Phases: {"schema":1, "policy":"phase", "phases":[..], "peaks":[..], "runs":[..]}.
// Usage: {"schema":1, "policy":NAME, "runs":N, "cpu_cores":{..}, "memory_bytes":{..}}.
// An empty state is null.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "policy/learned_state.h"

namespace cgphase {

nlohmann::json learned_to_json(const LearnedState& learned);
// If "peaks" or the "runs" of phases are missing, as in older data, they are empty. The result is
// within bounds. Errors: invalid, with the reason.
Result<LearnedState> learned_from_json(const nlohmann::json& json);

}  // namespace cgphase
