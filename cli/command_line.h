// Entry point of the command: takes the arguments and returns the exit code.
#pragma once

#include <span>

#include "cli/commands/verbs.h"

namespace cgphase {

// Runs one verb of cli_verbs() or `more`. Never throws. Prints each error as one line on standard
// error. Returns an exit code (protocol/protocol.h, Exit).
int run_command(int count, const char* const* words, std::span<AddVerbs* const> more);

}  // namespace cgphase
