// The verb export: this host's history as a database of plain tables.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/options.h"

namespace cgphase {

// Adds it to `app`. Parsing runs it and puts its exit code in `exit_code`. `options` and
// `exit_code` must outlive the parsing.
void add_export_verb(CLI::App& app, const CommonOptions& options, int& exit_code);

}  // namespace cgphase
