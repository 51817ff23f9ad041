// cgphase top: the containers, again and again.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/options.h"

namespace cgphase {

// `options` and `exit_code` must outlive the parsing.
void add_top_verb(CLI::App& app, const CommonOptions& options, int& exit_code);

}  // namespace cgphase
