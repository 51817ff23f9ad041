// What of a configuration is not as cgphase ships it. Pure.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace cgphase {

// Key -> value, as the daemon prints it, of a file that lists each as "#key = value" below its
// [section] (agent/config/default_config.toml).
using ConfigDefaults = std::map<std::string, std::string>;
ConfigDefaults parse_config_defaults(std::string_view file);

// The reply to `config` with those of its rows whose value is another than the default, each with
// "default": null for a key that the daemon knows and this command does not, which is told where
// somebody has set it.
nlohmann::json config_differences(nlohmann::json reply, const ConfigDefaults& defaults);

}  // namespace cgphase
