#include "cli/commands/config_diff.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "protocol/view.h"

namespace cgphase {
namespace {

constexpr std::string_view kAssigns = " = ";

// The text as in the reply; view_text() would make it printable.
std::string raw_text(const nlohmann::json& row, const char* path) {
  const nlohmann::json& value = view(row, path);
  return value.is_string() ? value.get<std::string>() : std::string();
}

// True if the row's value differs from the one in `defaults`.
bool differs(const nlohmann::json& row, const ConfigDefaults& defaults) {
  const auto known = defaults.find(raw_text(row, "/key"));
  if (known != defaults.end()) return raw_text(row, "/value") != known->second;
  const std::string origin = raw_text(row, "/origin");
  return !origin.empty() && origin != "default";
}

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

nlohmann::json config_differences(nlohmann::json reply, const ConfigDefaults& defaults) {
  nlohmann::json rows = nlohmann::json::array();
  for (nlohmann::json row : view_array(reply, "/config")) {
    if (!differs(row, defaults)) continue;
    const auto known = defaults.find(raw_text(row, "/key"));
    row["default"] = known == defaults.end() ? nlohmann::json() : nlohmann::json(known->second);
    rows.push_back(std::move(row));
  }
  reply["config"] = std::move(rows);
  return reply;
}

}  // namespace cgphase
