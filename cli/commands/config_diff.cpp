#include "cli/commands/config_diff.h"

#include <algorithm>

namespace cgphase {
namespace {

constexpr std::string_view kAssigns = " = ";

}  // namespace

ConfigDefaults parse_config_defaults(std::string_view file) {
  ConfigDefaults defaults;
  std::string section;
  while (!file.empty()) {
    const std::string_view line = file.substr(0, file.find('\n'));
    file.remove_prefix(std::min(line.size() + 1, file.size()));
    if (line.starts_with('[')) section = std::string(line.substr(1, line.find(']') - 1)) + ".";
    // "# " begins a comment; "#key = value" is a default.
    const std::size_t assigns = line.find(kAssigns);
    if (!line.starts_with('#') || line.starts_with("# ") || assigns == std::string_view::npos)
      continue;
    defaults[section + std::string(line.substr(1, assigns - 1))] =
        line.substr(assigns + kAssigns.size());
  }
  return defaults;
}

ConfigDifferences config_differences(const ConfigReply& reply, const ConfigDefaults& defaults) {
  ConfigDifferences differences;
  for (const ConfigEntry& row : reply.config) {
    const auto known = defaults.find(row.key);
    if (known != defaults.end() && known->second != row.value)
      differences.config.push_back({row, known->second});
    if (known == defaults.end() && !row.origin.empty() && row.origin != "default")
      differences.config.push_back({row, std::nullopt});
  }
  return differences;
}

}  // namespace cgphase
