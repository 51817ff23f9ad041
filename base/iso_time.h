// Parses dates and times of day in ISO 8601. Each function removes what it parsed from the
// beginning of `rest`. If it returns false, `rest` may be partly consumed.
#pragma once

#include <ctime>
#include <optional>
#include <string_view>

namespace cgphase {

// Exactly `count` decimal digits.
std::optional<int> take_digits(std::string_view& rest, std::size_t count);

// This one character.
bool take_char(std::string_view& rest, char c);

// "2026-01-31", or "2026/01/31" with `separator` '/'. Days that are not in the calendar are
// refused.
bool take_date(std::string_view& rest, std::tm& parts, char separator = '-');

// "14:03", "14:03:05", "14:03:05.25", "14:03:05,25".
bool take_clock(std::string_view& rest, std::tm& parts, double& fraction);

// Parses all of `rest` as a zone: "Z", "UTC", "+01:00", "-0530", "+01" give seconds east of
// Greenwich. An empty `rest` leaves the offset absent.
bool take_zone(std::string_view rest, std::optional<int>& offset_seconds);

struct IsoTime {
  double seconds = 0;  // since the epoch; UTC if the text has no zone
  bool zoned = false;
};

// Parses all of "2026-01-31T14:03:05.25+01:00". A blank may replace the T, the date may have
// slashes, and the zone may be missing. Any other text is absent.
std::optional<IsoTime> parse_iso_time(std::string_view text);

}  // namespace cgphase
