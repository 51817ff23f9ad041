// completion: what completes this command in a shell, for who has not installed the package.
#pragma once

#include <CLI/CLI.hpp>

namespace cgphase {

// Adds the verb to `app`; it puts its exit code into `exit_code`, which outlives the parsing.
void add_completion_verb(CLI::App& app, int& exit_code);

}  // namespace cgphase
