// Parses and formats times. Pure except for the local time zone (localtime_r, mktime).
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace cgphase {

// Parses "-10m", "1h30m ago", "3 min ago", "now", "today", "yesterday", "yesterday 14:00",
// "14:03[:05]" (today), "2026-01-31", "2026-01-31 14:03", "2026-01-31T14:03:05.250Z", "...+01:00",
// "@1700000000" and seconds since the epoch with at least five digits. A time without a zone is
// local time, or UTC if `utc`. Errors: invalid, with examples.
Result<WallTime> parse_time(std::string_view text, WallTime now, bool utc);

// Returns "2026-01-31 14:03:05", with " UTC" if `utc`. `seconds` counts from the epoch.
std::string time_text(double seconds, bool utc);

}  // namespace cgphase
