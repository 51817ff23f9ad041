#include "traces/trace_cell.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/parse.h"
#include "base/text.h"

namespace cgphase {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

// The meaning of commas in a number.
enum class Commas : std::uint8_t { no_number, decimal, either, thousands };

Commas commas_of(std::string_view cell) {
  constexpr std::size_t kGroup = 3;
  if (cell.starts_with('-') || cell.starts_with('+')) cell.remove_prefix(1);
  const std::size_t comma = cell.find(',');
  if (comma == cell.npos) return Commas::no_number;
  const std::string_view whole = cell.substr(0, comma);
  std::string_view rest = cell.substr(comma + 1);
  if (!all_digits(whole)) return Commas::no_number;
  if (const std::size_t exponent = rest.find_first_of("eE"); exponent != rest.npos)
    return all_digits(rest.substr(0, exponent)) ? Commas::decimal : Commas::no_number;
  const bool groups = whole.size() <= kGroup && whole.front() != '0';
  if (all_digits(rest))
    return groups && rest.size() == kGroup ? Commas::either : Commas::decimal;
  if (!groups) return Commas::no_number;
  rest = rest.substr(0, rest.find('.'));
  for (;;) {
    if (!all_digits(rest.substr(0, kGroup)) || rest.size() < kGroup) return Commas::no_number;
    rest.remove_prefix(kGroup);
    if (rest.empty()) return Commas::thousands;
    if (rest.front() != ',') return Commas::no_number;
    rest.remove_prefix(1);
  }
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

bool is_missing(std::string_view cell) {
  constexpr std::array<std::string_view, 13> kWords = {
      "nan", "-nan", "na", "n/a", "[n/a]", "#n/a", "<na>", "null", "nil", "none", "undefined",
      "-", "--"};
  if (cell.empty()) return true;
  if (is_digit(cell.front())) return false;  // fast path: nearly every cell
  return cell.size() <= 9 && std::ranges::find(kWords, lower_case(cell)) != kWords.end();
}

bool is_no_limit(std::string_view cell) {
  return cell.size() <= 9 && (lower_case(cell) == "max" || lower_case(cell) == "unlimited" ||
                              is_infinite(cell));
}

bool is_infinite(std::string_view cell) {
  if (cell.starts_with('+')) cell.remove_prefix(1);
  double value = 0;
  const char* const end = cell.data() + cell.size();
  const auto [stop, error] = std::from_chars(cell.data(), end, value);
  return stop == end && (error == std::errc::result_out_of_range || std::isinf(value));
}

void NumberFormat::learn(std::string_view cell) {
  if (decimal_ != Decimal::unknown) return;
  if (commas_of(cell) == Commas::decimal) decimal_ = Decimal::comma;
  else if (cell.contains('.') && parse_double(cell)) decimal_ = Decimal::point;
}

std::optional<double> NumberFormat::read(std::string_view cell) {
  learn(cell);
  if (cell.starts_with('+')) cell.remove_prefix(1);
  const bool comma = cell.contains(',');
  if (decimal_ == Decimal::comma && cell.contains('.')) return std::nullopt;
  if (!comma) return parse_double(cell);
  const Commas commas = commas_of(cell);
  if (decimal_ != Decimal::comma || commas == Commas::thousands) return std::nullopt;
  std::string point(cell);
  std::ranges::replace(point, ',', '.');
  return parse_double(point);
}

std::string NumberFormat::why_not(std::string_view cell) const {
  const Commas commas = commas_of(cell);
  if (commas == Commas::thousands) return "has thousands separators; write the digits alone";
  if (commas == Commas::either && decimal_ != Decimal::comma)
    return "may have a decimal comma or a thousands separator; use a decimal point or digits only";
  if (commas == Commas::decimal || (decimal_ == Decimal::comma && parse_double(cell)))
    return "contradicts the numbers before it: some have a decimal point, some a comma";
  if (cell.ends_with('%')) return "is a percentage, and the column is not";
  const std::size_t unit = cell.find_first_not_of("0123456789.,-+ ");
  if (unit != cell.npos && unit > 0 && is_digit(cell.front()) && std::isalpha(
          static_cast<unsigned char>(cell[unit])))
    return "has a unit; write the number alone, in the unit that "
           "docs/internals/trace-format.md names";
  return "is not a number";
}

}  // namespace cgphase
