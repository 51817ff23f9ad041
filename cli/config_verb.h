// config check, show and diff: the daemon's configuration.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/options.h"

namespace cgphase {

// As add_daemon_verbs().
void add_config_verbs(CLI::App& app, const CommonOptions& options, int& exit_code);

}  // namespace cgphase
