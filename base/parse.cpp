#include "base/parse.h"

#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

namespace cgphase {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

struct Suffix {
  std::string_view name;
  double factor;
};

constexpr std::array<Suffix, 14> kByteSuffixes = {{{"", 1}, {"B", 1},
    {"K", 0x1p10}, {"KiB", 0x1p10}, {"M", 0x1p20}, {"MiB", 0x1p20}, {"G", 0x1p30},
    {"GiB", 0x1p30}, {"T", 0x1p40}, {"TiB", 0x1p40},
    {"k", 0x1p10}, {"m", 0x1p20}, {"g", 0x1p30}, {"t", 0x1p40}}};
constexpr std::array<Suffix, 10> kDurationSuffixes = {{{"ns", 1}, {"us", 1e3}, {"ms", 1e6},
    {"s", 1e9}, {"sec", 1e9}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}, {"d", 86400e9},
    {"w", 7 * 86400e9}}};

// Splits "1.5 GiB" into a number and the factor of its suffix.
template <std::size_t N>
std::optional<double> scaled(std::string_view text, const std::array<Suffix, N>& suffixes) {
  text = trim(text);
  const std::size_t end = text.find_first_not_of("0123456789.");
  const std::optional<double> number = parse_double(text.substr(0, end));
  if (!number) return std::nullopt;
  const std::string_view suffix =
      end == std::string_view::npos ? std::string_view{} : trim(text.substr(end));
  for (const Suffix& candidate : suffixes)
    if (candidate.name == suffix) return *number * candidate.factor;
  return std::nullopt;
}

constexpr double kPowersOfTen[] = {1,   1e1, 1e2, 1e3, 1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

// Parses "12" and "-3.25". At most 15 digits and their power of ten are exact as doubles, so that
// the quotient is rounded once (Clinger, "How to read floating point numbers accurately", 1990).
// Any other text is absent.
std::optional<double> parse_short_decimal(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > std::size(kPowersOfTen)) return std::nullopt;
  std::int64_t digits = 0;
  std::size_t point = text.size();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = static_cast<unsigned>(text[i] - '0');
    if (digit <= 9) {
      digits = 10 * digits + digit;
    } else if (text[i] == '.' && point == text.size() && i > 0 && i + 1 < text.size()) {
      point = i;
    } else {
      return std::nullopt;
    }
  }
  if (point == text.size() && text.size() == std::size(kPowersOfTen)) return std::nullopt;
  const std::size_t decimals = point == text.size() ? 0 : text.size() - point - 1;
  const double value = static_cast<double>(digits) / kPowersOfTen[decimals];
  return negative ? -value : value;
}

}  // namespace

std::optional<std::uint64_t> parse_u64(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || text.empty()) return std::nullopt;
  return value;
}

std::optional<double> parse_double(std::string_view text) {
  if (const std::optional<double> simple = parse_short_decimal(text)) return simple;
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || text.empty() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

bool next_line(std::string_view& rest, std::string_view& line) {
  if (rest.empty()) return false;
  const std::size_t end = rest.find('\n');
  line = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return true;
}

bool next_word(std::string_view& rest, std::string_view& word) {
  const std::size_t begin = rest.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return false;
  const std::size_t end = rest.find_first_of(kBlanks, begin);
  word = rest.substr(begin, end == std::string_view::npos ? end : end - begin);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end);
  return true;
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  if (const auto exact = parse_u64(trim(text))) return exact;
  const std::optional<double> value = scaled(text, kByteSuffixes);
  if (!value || *value >= 0x1p63) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::optional<double> parse_share(std::string_view text) {
  text = trim(text);
  if (!text.ends_with('%')) return parse_double(text);
  const std::optional<double> percent = parse_double(trim(text.substr(0, text.size() - 1)));
  if (!percent) return std::nullopt;
  return *percent / 100;
}

std::optional<std::int64_t> parse_duration_ns(std::string_view text) {
  const std::optional<double> value = scaled(text, kDurationSuffixes);
  if (!value || *value >= 0x1p62) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

}  // namespace cgphase
