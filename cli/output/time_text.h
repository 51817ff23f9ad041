// Times as people write them and read them. Pure but for the local time zone (localtime_r, mktime).
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace cgphase {

// "-10m", "1h30m ago", "3 min ago", "now", "today", "yesterday", "yesterday 14:00", "14:03[:05]"
// (today), "2026-01-31", "2026-01-31 14:03", "2026-01-31T14:03:05.250Z", "...+01:00", "@1700000000"
// and the bare epoch of at least five digits. Without a zone it is local time, or UTC where `utc`.
// Errors: invalid, with examples.
Result<WallTime> parse_time(std::string_view text, WallTime now, bool utc);

// "2026-01-31 14:03:05", with " UTC" where `utc`. `seconds` since the epoch.
std::string time_text(double seconds, bool utc);

}  // namespace cgphase
