// `cgphase predict`: the phase of each row of a trace.
#pragma once

#include "cli/options.h"

namespace CLI {
class App;
}

namespace cgphase {

// As add_model_verbs (cli/model_verbs.h).
void add_predict(CLI::App& app, const CommonOptions& common, int& exit_code);

}  // namespace cgphase
