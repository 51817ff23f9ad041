// plot: executions of a trace, or the cohesion of their clusters, as an SVG picture. Needs no
// daemon.
#pragma once

#include <CLI/CLI.hpp>

namespace cgphase {

// As add_model_verbs(); exit 3 where --id names no execution of the trace.
void add_plot_verb(CLI::App& app, int& exit_code);

}  // namespace cgphase
