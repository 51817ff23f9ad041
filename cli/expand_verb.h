// `cgphase expand`: how well a model's phases fit new traces, and splitting one of them.
#pragma once

namespace CLI {
class App;
}

namespace cgphase {

// As add_model_verbs (cli/model_verbs.h).
void add_expand(CLI::App& app, int& exit_code);

}  // namespace cgphase
