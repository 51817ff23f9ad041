#pragma once

#include <string_view>

namespace cgphase {

inline bool has(std::string_view text, std::string_view part) { return text.contains(part); }
// One line and its end, no more: what a complaint of the command is.
inline bool one_line(std::string_view text) {
  return !text.empty() && text.find('\n') == text.size() - 1;
}

}  // namespace cgphase
