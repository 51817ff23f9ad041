// The table of verbs: a new verb is one file and one row in verbs.cpp (in lab/, of what compares
// and draws, one row in lab/verbs.cpp).
#pragma once

#include <span>

namespace CLI {
class App;
}

namespace cgphase {

struct CommonOptions;

// Adds one or more verbs to `app`. Parsing runs the chosen one and sets `exit_code`. `options` and
// `exit_code` must outlive the parsing.
using AddVerbs = void(CLI::App& app, const CommonOptions& options, int& exit_code);

// In the order of --help; those that add to another verb come after it.
std::span<AddVerbs* const> cli_verbs();

}  // namespace cgphase
