// prototypes: what the phase sequences of many executions have in common. Needs no daemon.
#pragma once

#include "cli/options.h"

namespace CLI {
class App;
}

namespace cgphase {

// As add_model_verbs(). A bad option is a parse error of the command line.
void add_prototypes(CLI::App& app, const CommonOptions& common, int& exit_code);

}  // namespace cgphase
