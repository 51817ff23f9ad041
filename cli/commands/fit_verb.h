// The verb fit: does this job fit into what is really free on this host.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/output/style.h"

namespace cgphase {

// The answer (policy/budget/host_fit.h) as text: a sentence, what it is made of, a row per
// container.
std::string render_fit(const nlohmann::json& body, const TextStyle& style);

}  // namespace cgphase
