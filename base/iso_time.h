// Dates and times of day as ISO 8601 has them. Each function cuts what it understood off the
// beginning of `rest`; where it returns false, `rest` is in between.
#pragma once

#include <ctime>
#include <optional>
#include <string_view>

namespace cgphase {

// Exactly `count` decimal digits.
std::optional<int> take_digits(std::string_view& rest, std::size_t count);

// This one character.
bool take_char(std::string_view& rest, char c);

// "2026-01-31", or "2026/01/31" with that separator: a day that the calendar has.
bool take_date(std::string_view& rest, std::tm& parts, char separator = '-');

// "14:03", "14:03:05", "14:03:05.25", "14:03:05,25".
bool take_clock(std::string_view& rest, std::tm& parts, double& fraction);

// All of the rest: "Z", "UTC", "+01:00", "-0530", "+01" are seconds east of Greenwich; an empty
// rest is no zone.
bool take_zone(std::string_view rest, std::optional<int>& offset_seconds);

struct IsoTime {
  double seconds = 0;  // since the epoch; UTC where the text has no zone
  bool zoned = false;
};

// The whole of "2026-01-31T14:03:05.25+01:00", also with a blank in place of T, slashes in the
// date, and no zone. Absent where it is anything else.
std::optional<IsoTime> parse_iso_time(std::string_view text);

}  // namespace cgphase
