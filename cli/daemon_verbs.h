// The verbs that ask the daemon: status, list, show, explain, history, events, mode, pause, resume,
// restore.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/options.h"

namespace cgphase {

// Adds the verbs to `app`. Parsing runs the chosen one and puts its exit code in `exit_code`.
// `options` and `exit_code` must outlive the parsing.
void add_daemon_verbs(CLI::App& app, const CommonOptions& options, int& exit_code);

}  // namespace cgphase
