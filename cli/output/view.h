// Formats quantities of a reply (protocol/view.h) for tables; "-" if absent.
#pragma once

#include <optional>
#include <string>

#include "protocol/view.h"

namespace cgphase {

std::string cores_text(std::optional<double> cores);
std::string bytes_text(std::optional<double> bytes);
std::string duration_text(std::optional<double> seconds);
std::string percent_text(std::optional<double> ratio);
std::string count_text(std::optional<double> count);

}  // namespace cgphase
