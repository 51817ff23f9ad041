// `cgphase replay`: what policies would have done on recorded executions (docs/replay.md).
#pragma once

#include "cli/options.h"

namespace CLI {
class App;
}

namespace cgphase {

// Needs no daemon and no root. Exit codes: 6 for what was recorded, 8 for an assertion that does
// not hold, 2 for wrong words.
void add_replay_verb(CLI::App& app, const CommonOptions& common, int& exit_code);

}  // namespace cgphase
