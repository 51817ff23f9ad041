// plot: executions of a trace, the cohesion of their clusters, or a live container, as an SVG
// picture. Only the last needs the daemon.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/options.h"

namespace cgphase {

// As add_daemon_verbs(); exit 3 where --id names no execution of the trace.
void add_plot_verb(CLI::App& app, const CommonOptions& common, int& exit_code);

}  // namespace cgphase
