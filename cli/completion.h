// Completion of a command line, from the table of verbs. The scripts in packaging/completions/ ask
// `cgphase __complete WORD...`.
#pragma once

#include <span>
#include <string>

#include "cli/options.h"

namespace CLI {
class App;
}

namespace cgphase {

// Returns what may be the last of `words`, which may be empty. The others come before it on the
// command line, without the name of the program. Each candidate is a line, with its description
// after a tab if it has one. An empty line means names of files. The shell keeps the candidates
// that fit.
//
// The daemon names the containers; blocks for at most a second. Without it there are none.
std::string complete(const CLI::App& app, std::span<const char* const> words,
                     const CommonOptions& common);

}  // namespace cgphase
