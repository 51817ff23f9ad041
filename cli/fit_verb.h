// The verb fit: does this job fit into what is really free on this host.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/options.h"
#include "cli/style.h"

namespace cgphase {

// Adds it to `app`. Parsing runs it and puts its exit code in `exit_code`: 0 where it fits, 7 where
// it does not. `options` and `exit_code` must outlive the parsing.
void add_fit_verb(CLI::App& app, const CommonOptions& options, int& exit_code);

// The answer (policy/budget/host_fit.h) as text: a sentence, what it is made of, a row per container.
std::string render_fit(const nlohmann::json& body, const TextStyle& style);

}  // namespace cgphase
