// The verbs of cgphase that need no daemon: predict, train, expand, model.
#pragma once

#include "cli/options.h"

namespace CLI {
class App;
}

namespace cgphase {

// Registers the verbs with `app`. A verb that runs sets `exit_code`: 0, 1 failure, 5 not permitted,
// 6 input invalid or not there. Errors are one line on stderr. A file that is written appears whole
// or not at all. `common` and `exit_code` must live as
// long as `app`.
void add_model_verbs(CLI::App& app, const CommonOptions& common, int& exit_code);

}  // namespace cgphase
