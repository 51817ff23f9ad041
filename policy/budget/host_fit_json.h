// The answer whether a job fits, as JSON for people and programs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "policy/budget/host_fit.h"

namespace cgphase {

// {"schema":1, "fits", "sentence", ...}.
nlohmann::json to_json(const FitAnswer& answer);

}  // namespace cgphase
