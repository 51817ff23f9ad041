// The table of verbs. A new verb is one file and one row in verbs.cpp; a verb that compares or
// draws belongs to lab/ and has its row in lab/main.cpp.
#pragma once

#include <span>

namespace CLI {
class App;
}

namespace cgphase {

struct CommonOptions;

// Adds one or more verbs to `app`. Parsing runs the chosen verb and sets `exit_code`. `options` and
// `exit_code` must outlive the parsing.
using AddVerbs = void(CLI::App& app, const CommonOptions& options, int& exit_code);

// Returns the verbs in the order of --help. A function that extends another verb comes after it.
std::span<AddVerbs* const> cli_verbs();

}  // namespace cgphase
