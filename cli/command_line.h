// The whole command: words in, exit code out.
#pragma once

#include <span>

#include "cli/commands/verbs.h"

namespace cgphase {

// With the verbs of cli_verbs() and `more`. Never throws; errors are one line on standard error.
// Exit codes: protocol/protocol.h, Exit.
int run_command(int count, const char* const* words, std::span<AddVerbs* const> more);

}  // namespace cgphase
