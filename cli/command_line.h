// The whole command: words in, exit code out. main() is one call of it, and so are the tests.
#pragma once

namespace cgphase {

// Never throws; errors are one line on standard error. Exit codes: protocol/protocol.h, Exit.
int run_command(int count, const char* const* words);

}  // namespace cgphase
