// `cgphase model challenge`: trains a model on this host's history and installs it only where it
// beats the one in use.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/options.h"

namespace cgphase {

// Adds the verb to `model`. `options` and `exit_code` must outlive the parsing.
void add_challenge(CLI::App& model, const CommonOptions& options, int& exit_code);

}  // namespace cgphase
