#include "cli/output/time_text.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <ctime>

using namespace cgphase;
using namespace std::chrono_literals;

namespace {

// 2026-03-15 14:30:00 UTC, a Sunday.
const WallTime kNow{std::chrono::seconds(1'773'585'000)};

// Seconds before kNow; -1 if the text is not a time.
double before(std::string_view text, bool utc = true) {
  const auto time = parse_time(text, kNow, utc);
  return time ? std::chrono::duration<double>(kNow - *time).count() : -1;
}

struct Zone {
  explicit Zone(const char* name) {
    ::setenv("TZ", name, 1);
    ::tzset();
  }
  ~Zone() {
    ::unsetenv("TZ");
    ::tzset();
  }
};

}  // namespace

TEST_CASE("a negative duration is a time in the past") {
  CHECK(before("-10m") == 600);
  CHECK(before("-90s") == 90);
  CHECK(before("-1h30m") == 5400);
  CHECK(before("-500ms") == 0.5);
}

TEST_CASE("a duration with ago is a time in the past") {
  CHECK(before("3m ago") == 180);
  CHECK(before("10m20s ago") == 620);
  CHECK(before("2 h 5 min ago") == 7500);
  CHECK(before(" 1d ago ") == 86'400);
}

TEST_CASE("now is now") { CHECK(before("now") == 0); }

TEST_CASE("an ISO time may have T or a blank, and may lack seconds") {
  CHECK(before("2026-03-15T14:00") == 1800);
  CHECK(before("2026-03-15 14:00:30") == 1770);
  CHECK(before("2026-03-15T14:29:59.5") == 0.5);
}

TEST_CASE("a time zone is applied") {
  CHECK(before("2026-03-15T14:00:00Z") == 1800);
  CHECK(before("2026-03-15T15:00:00+01:00") == 1800);
  CHECK(before("2026-03-15T08:30:00-0530") == 1800);
  CHECK(before("2026-03-15 14:00 UTC") == 1800);
}

TEST_CASE("a time without a zone is local time, or UTC if requested") {
  const Zone zone("CET-1");
  CHECK(before("2026-03-15T15:00", false) == 1800);
  CHECK(before("2026-03-15T14:00", true) == 1800);
  CHECK(before("2026-03-15T14:00Z", false) == 1800);
}

TEST_CASE("days and times of the day are parsed") {
  CHECK(before("today") == 14 * 3600 + 1800);
  CHECK(before("yesterday") == 38 * 3600 + 1800);
  CHECK(before("yesterday 14:00") == 88'200);
  CHECK(before("14:03") == 27 * 60);
  CHECK(before("2026-03-15") == 14 * 3600 + 1800);
}

TEST_CASE("yesterday of the first is the last of the month before") {
  const WallTime first{std::chrono::seconds(1'772'368'200)};  // 2026-03-01 12:30 UTC
  CHECK(parse_time("yesterday 12:30", first, true).value() == first - 24h);
}

TEST_CASE("seconds since the epoch need five digits or a mark") {
  CHECK(before("1773585000") == 0);
  CHECK(before("1773584999.5") == 0.5);
  CHECK(before("@1773584000") == 1000);
  CHECK(before("@5") == 1'773'584'995);
  CHECK(before("2026") == -1);
}

TEST_CASE("text that is not a time is refused with examples") {
  for (const char* text :
       {"", " ", "-", "ago", " ago", "10m", "-10", "-10x", "-m", "2026-13-01", "2026-02-30",
        "2026-03-15X14:00", "2026-03-15T24:00", "14:60", "14:03:60", "14:3", "14:03:05.",
        "2026-03-15T14:00+99:00", "2026-03-15T14:00 CET", "yesterdays", "@", "@x", "@1e3",
        "12345.6.7", "-1000000d", "gestern", "1773585000000000000"})
    CHECK_MESSAGE(!parse_time(text, kNow, true), text);
  const auto refused = parse_time("ges\x1btern", kNow, true);
  CHECK(refused.error().kind == ErrorKind::invalid);
  CHECK(refused.error().text.starts_with("'ges\\x1btern' is not a time; write -10m"));
}

TEST_CASE("a time before 1970 is refused") {
  CHECK_FALSE(parse_time("1969-12-31", kNow, true));
  CHECK_FALSE(parse_time("-3000d -3000d -3000d -3000d -3000d -3000d -3000d", kNow, true));
}

TEST_CASE("times are shown in local time, or in UTC with the zone") {
  const Zone zone("CET-1");
  CHECK(time_text(1'773'585'000, true) == "2026-03-15 14:30:00 UTC");
  CHECK(time_text(1'773'585'000.9, false) == "2026-03-15 15:30:00");
}

TEST_CASE("an impossible time is shown as a dash") {
  CHECK(time_text(-1, true) == "-");
  CHECK(time_text(1e30, true) == "-");
}
