// The verb fit: shows whether a job fits into what is free on this host.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/output/style.h"

namespace cgphase {

// Renders an answer (policy/budget/host_fit.h) as text: a sentence, the sums behind it, and a row
// per container.
std::string render_fit(const nlohmann::json& body, const TextStyle& style);

}  // namespace cgphase
