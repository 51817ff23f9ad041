#include "model/foreign_json.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace cgphase {

using nlohmann::json;

Result<json> parse_foreign_json(const std::string& text, const std::string& name) {
  const auto refuse = [&](const std::string& why) {
    return failure(ErrorKind::invalid, name + ": not well-formed JSON: " + why);
  };
  bool too_deep = false;
  const auto check_depth = [&](int depth, json::parse_event_t event, json&) {
    const bool opens =
        event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    too_deep |= opens && depth >= kMaxJsonDepth;
    return !too_deep;
  };
  try {
    json document = json::parse(text, check_depth);
    if (too_deep) return refuse("deeper than " + std::to_string(kMaxJsonDepth) + " levels");
    return document;
  } catch (const json::exception& exception) {
    return refuse(reason_of(exception));
  }
}

std::string reason_of(const std::exception& exception) {
  std::string_view what = exception.what();
  const std::size_t end = what.starts_with("[json.exception") ? what.find("] ") : what.npos;
  if (end != what.npos) what.remove_prefix(end + 2);
  // The message quotes the last input, which may be the whole document.
  if (what.size() <= kMaxReasonBytes) return printable(what);
  return printable(what.substr(0, kMaxReasonBytes)) + "...";
}

}  // namespace cgphase
