#include "cli/view.h"

#include <fmt/format.h>

#include "base/text.h"

namespace cgphase {

using nlohmann::json;

const json& view(const json& body, const char* path) {
  static const json kNull;
  const json::json_pointer pointer(path);
  return body.contains(pointer) ? body.at(pointer) : kNull;
}

const json& view_array(const json& body, const char* path) {
  static const json kEmpty = json::array();
  const json& found = view(body, path);
  return found.is_array() ? found : kEmpty;
}

std::string view_text(const json& body, const char* path) {
  const json& found = view(body, path);
  return found.is_string() ? printable(found.get_ref<const std::string&>()) : std::string();
}

std::optional<double> view_number(const json& body, const char* path) {
  const json& found = view(body, path);
  return found.is_number() ? std::optional(found.get<double>()) : std::nullopt;
}

bool view_flag(const json& body, const char* path) {
  const json& found = view(body, path);
  return found.is_boolean() && found.get<bool>();
}

std::string cores_text(std::optional<double> cores) {
  return cores ? fmt::format("{:.2f}", *cores) : "-";
}

std::string bytes_text(std::optional<double> bytes) { return bytes ? human_bytes(*bytes) : "-"; }

std::string duration_text(std::optional<double> seconds) {
  return seconds ? human_duration(*seconds) : "-";
}

std::string percent_text(std::optional<double> ratio) {
  return ratio ? fmt::format("{:.0f} %", *ratio * 100) : "-";
}

std::string count_text(std::optional<double> count) {
  return count ? fmt::format("{:.0f}", *count) : "-";
}

}  // namespace cgphase
