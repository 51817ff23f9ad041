#include "base/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace cgphase {
namespace {

void append_hex(std::string& out, unsigned char byte) {
  static constexpr char kDigits[] = "0123456789abcdef";
  out += "\\x";
  out += kDigits[byte >> 4];
  out += kDigits[byte & 0xF];
}

// Length of the well-formed UTF-8 sequence at the start of `bytes` (RFC 3629), 0 if there is none.
std::size_t utf8_length(std::string_view bytes, std::uint32_t& code) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = at(0);
  std::size_t length = 0;
  std::uint32_t least = 0;
  if (first < 0x80) { code = first; return 1; }
  if (first >= 0xC2 && first < 0xE0) { length = 2; code = first & 0x1FU; least = 0x80; }
  else if (first >= 0xE0 && first < 0xF0) { length = 3; code = first & 0x0FU; least = 0x800; }
  else if (first >= 0xF0 && first < 0xF5) { length = 4; code = first & 0x07U; least = 0x10000; }
  else return 0;
  if (bytes.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xC0U) != 0x80U) return 0;
    code = (code << 6) | (at(i) & 0x3FU);
  }
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return code < least || code > 0x10FFFF || surrogate ? 0 : length;
}

bool is_unsafe(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7F && code < 0xA0)) return true;  // C0, DEL, C1
  if (code >= 0x200B && code <= 0x200F) return true;              // zero width, marks
  if (code >= 0x2028 && code <= 0x202E) return true;              // separators, bidi overrides
  return (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

// The largest duration that is printed. Larger values and NaN print as this one.
constexpr double kLongestDuration = 1e15;

}  // namespace

std::string escape_name(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    std::uint32_t code = 0;
    const std::size_t length = utf8_length(bytes, code);
    if (length == 0 || is_unsafe(code)) {
      for (std::size_t i = 0; i < std::max<std::size_t>(length, 1); ++i)
        append_hex(out, static_cast<unsigned char>(bytes[i]));
    } else if (code == '\\') {
      out += "\\\\";
    } else {
      out.append(bytes.substr(0, length));
    }
    bytes.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string unescape_name(std::string_view printed) {
  std::string out;
  for (std::size_t i = 0; i < printed.size(); ++i) {
    const std::string_view rest = printed.substr(i);
    if (rest.starts_with("\\\\")) {
      out += '\\';
      i += 1;
    } else if (rest.starts_with("\\x") && rest.size() >= 4 && hex_value(rest[2]) >= 0 &&
               hex_value(rest[3]) >= 0) {
      out += static_cast<char>(hex_value(rest[2]) * 16 + hex_value(rest[3]));
      i += 3;
    } else {
      out += printed[i];
    }
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  for (;;) {
    const std::size_t backslash = text.find('\\');
    out += escape_name(text.substr(0, backslash));
    if (backslash == std::string_view::npos) return out;
    out += '\\';
    text.remove_prefix(backslash + 1);
  }
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string human_bytes(double bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (std::fabs(bytes) >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  char text[48];
  std::snprintf(text, sizeof text, unit == 0 || std::fabs(bytes) >= 100 ? "%.0f %s" : "%.1f %s",
                bytes, kUnits[unit]);
  return text;
}

std::string human_duration(double seconds) {
  char text[64];
  const double size = std::min(kLongestDuration, std::fabs(seconds));
  const char* const sign = seconds < 0 ? "-" : "";
  const auto print = [&](const char* format, auto... numbers) {
    std::snprintf(text, sizeof text, format, sign, numbers...);
    return std::string(text);
  };
  // Each unit is chosen by what is printed, so that 59.9 s is a minute and not 60 s.
  const auto rounded = [&](double unit) { return std::llround(size / unit); };
  if (rounded(0.001) < 1000) {
    if (rounded(0.001) == 0) return "0 s";
    return print("%s%lld ms", rounded(0.001));
  }
  if (const long long tenths = rounded(0.1); tenths < 100 && tenths % 10 != 0)
    return print("%s%lld.%lld s", tenths / 10, tenths % 10);
  const long long whole = rounded(1);
  if (whole < 60) return print("%s%lld s", whole);
  if (whole < 3600) return print("%s%lld min %lld s", whole / 60, whole % 60);
  const long long minutes = rounded(60);
  return print("%s%lld h %lld min", minutes / 60, minutes % 60);
}

}  // namespace cgphase
