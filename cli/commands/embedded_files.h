// Files of the tree that are part of the command. cli/CMakeLists.txt makes the source of this
// header out of them.
#pragma once

#include <string_view>

namespace cgphase {

// What the package installs for the shells (packaging/completions/).
std::string_view bash_completion();
std::string_view zsh_completion();

// Every key of the daemon's configuration at its default, commented out
// (agent/config/default_config.toml).
std::string_view default_config_file();

}  // namespace cgphase
