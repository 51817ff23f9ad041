#include "cli/output/view.h"

#include <fmt/format.h>

#include "base/text.h"

namespace cgphase {

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
