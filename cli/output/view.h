// Formats quantities of a reply for tables; "-" if absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"
#include "protocol/view.h"

namespace cgphase {

std::string cores_text(std::optional<double> cores);
std::string bytes_text(std::optional<double> bytes);
std::string duration_text(std::optional<double> seconds);
std::string percent_text(std::optional<double> ratio);
std::string count_text(std::optional<double> count);

// Integers as doubles, which is what the functions above take.
inline std::optional<double> real(const std::optional<std::uint64_t>& number) {
  return number ? std::optional(static_cast<double>(*number)) : std::nullopt;
}
inline std::optional<double> real(const std::optional<Bytes>& bytes) {
  return bytes ? std::optional(static_cast<double>(bytes->value)) : std::nullopt;
}
inline std::optional<double> real(const std::optional<Cores>& cores) {
  return cores ? std::optional(cores->value) : std::nullopt;
}

}  // namespace cgphase
