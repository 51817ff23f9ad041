// cgphase bundle: what somebody else needs to see what happened on this host.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/options.h"

namespace cgphase {

// `options` and `exit_code` must outlive the parsing.
void add_bundle_verb(CLI::App& app, const CommonOptions& options, int& exit_code);

}  // namespace cgphase
