// Keys of a configuration whose value is not the shipped default. Pure.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace cgphase {

// Key -> value, in the daemon's spelling. Parsed from a file that lists each as "#key = value"
// below its [section] (agent/config/default_config.toml).
using ConfigDefaults = std::map<std::string, std::string>;
ConfigDefaults parse_config_defaults(std::string_view file);

// Reduces the reply to `config` to the rows whose value is not the default, and adds "default" to
// each. "default" is null for a key that this command does not know; such a key is listed if
// somebody has set it.
nlohmann::json config_differences(nlohmann::json reply, const ConfigDefaults& defaults);

}  // namespace cgphase
