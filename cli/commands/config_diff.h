// Keys of a configuration whose value is not the shipped default. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "protocol/replies.h"

namespace cgphase {

// Key -> value, in the daemon's spelling. Parsed from a file that lists each as "#key = value"
// below its [section] (agent/config/default_config.toml).
using ConfigDefaults = std::map<std::string, std::string>;
ConfigDefaults parse_config_defaults(std::string_view file);

// The rows whose value is not the default. A key that this command does not know is one if somebody
// has set it.
ConfigDifferences config_differences(const ConfigReply& reply, const ConfigDefaults& defaults);

}  // namespace cgphase
