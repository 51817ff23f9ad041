#include "base/iso_time.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "base/parse.h"

namespace cgphase {

std::optional<int> take_digits(std::string_view& rest, std::size_t count) {
  if (rest.size() < count) return std::nullopt;
  int value = 0;
  for (const char c : rest.substr(0, count)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  rest.remove_prefix(count);
  return value;
}

bool take_char(std::string_view& rest, char c) {
  if (!rest.starts_with(c)) return false;
  rest.remove_prefix(1);
  return true;
}

bool take_date(std::string_view& rest, std::tm& parts, char separator) {
  const auto year = take_digits(rest, 4);
  if (!year || !take_char(rest, separator)) return false;
  const auto month = take_digits(rest, 2);
  if (!month || !take_char(rest, separator)) return false;
  const auto day = take_digits(rest, 2);
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(day.value_or(0)))};
  if (!date.ok()) return false;
  parts.tm_year = *year - 1900;
  parts.tm_mon = *month - 1;
  parts.tm_mday = *day;
  return true;
}

bool take_clock(std::string_view& rest, std::tm& parts, double& fraction) {
  const auto hour = take_digits(rest, 2);
  if (!hour || *hour > 23 || !take_char(rest, ':')) return false;
  const auto minute = take_digits(rest, 2);
  if (!minute || *minute > 59) return false;
  parts.tm_hour = *hour;
  parts.tm_min = *minute;
  if (!take_char(rest, ':')) return true;
  const auto second = take_digits(rest, 2);
  if (!second || *second > 59) return false;
  parts.tm_sec = *second;
  if (!take_char(rest, '.') && !take_char(rest, ',')) return true;
  const std::size_t length = std::min(rest.find_first_not_of("0123456789"), rest.size());
  const auto value = parse_double("0." + std::string(rest.substr(0, length)));
  if (length == 0 || !value) return false;
  fraction = *value;
  rest.remove_prefix(length);
  return true;
}

bool take_zone(std::string_view rest, std::optional<int>& offset_seconds) {
  if (rest.empty()) return true;
  if (rest == "Z" || rest == " UTC" || rest == "UTC") {
    offset_seconds = 0;
    return true;
  }
  const int sign = take_char(rest, '-') ? -1 : take_char(rest, '+') ? 1 : 0;
  if (sign == 0) return false;
  const auto hours = take_digits(rest, 2);
  const bool whole_hours = rest.empty();
  take_char(rest, ':');
  const auto minutes = whole_hours ? std::optional(0) : take_digits(rest, 2);
  if (!hours || !minutes || !rest.empty() || *hours > 14 || *minutes > 59) return false;
  offset_seconds = sign * (*hours * 3600 + *minutes * 60);
  return true;
}

std::optional<IsoTime> parse_iso_time(std::string_view text) {
  constexpr std::size_t kYearDigits = 4;
  if (text.size() <= kYearDigits) return std::nullopt;
  std::tm parts{};
  double fraction = 0;
  std::optional<int> offset;
  if (!take_date(text, parts, text[kYearDigits] == '/' ? '/' : '-')) return std::nullopt;
  if (!take_char(text, 'T') && !take_char(text, ' ')) return std::nullopt;
  if (!take_clock(text, parts, fraction) || !take_zone(text, offset)) return std::nullopt;
  const auto days = std::chrono::sys_days(
      std::chrono::year_month_day(std::chrono::year(parts.tm_year + 1900),
                                  std::chrono::month(static_cast<unsigned>(parts.tm_mon + 1)),
                                  std::chrono::day(static_cast<unsigned>(parts.tm_mday))));
  const std::chrono::seconds whole = days.time_since_epoch() + std::chrono::hours(parts.tm_hour) +
                                     std::chrono::minutes(parts.tm_min) +
                                     std::chrono::seconds(parts.tm_sec - offset.value_or(0));
  return IsoTime{static_cast<double>(whole.count()) + fraction, offset.has_value()};
}

}  // namespace cgphase
