// Files of the source tree that are embedded into the command. cli/CMakeLists.txt generates the
// implementation from them.
#pragma once

#include <string_view>

namespace cgphase {

// Completion scripts that the package installs (packaging/completions/).
std::string_view bash_completion();
std::string_view zsh_completion();
std::string_view fish_completion();

// Every configuration key of the daemon with its default, commented out
// (agent/config/default_config.toml).
std::string_view default_config_file();

}  // namespace cgphase
