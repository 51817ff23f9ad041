// `cgphase model install | rollback | list`: the models of this host.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/options.h"

namespace cgphase {

// Adds them to the verb `model`, which add_model_verbs() made. `options` and `exit_code` must
// outlive the parsing.
void add_installed_model_verbs(CLI::App& app, const CommonOptions& options, int& exit_code);

}  // namespace cgphase
