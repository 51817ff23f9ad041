#include "protocol/view.h"

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

}  // namespace cgphase
