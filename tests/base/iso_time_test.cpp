#include "base/iso_time.h"

#include <doctest/doctest.h>

using namespace cgphase;

namespace {

double seconds(const char* text) {
  const auto time = parse_iso_time(text);
  return time ? time->seconds : -1;
}

}  // namespace

TEST_CASE("ISO 8601 reads with T or a blank, slashes, a fraction and any zone") {
  CHECK(seconds("2023-11-14T22:13:20Z") == 1'700'000'000);
  CHECK(seconds("2023-11-14 22:13:20") == 1'700'000'000);
  CHECK(seconds("2023/11/14 22:13:20") == 1'700'000'000);
  CHECK(seconds("2023-11-14 22:13:20 UTC") == 1'700'000'000);
  CHECK(seconds("2023-11-14T22:13:20.25Z") == 1'700'000'000.25);
  CHECK(seconds("2023-11-14T22:13:20,25Z") == 1'700'000'000.25);
  CHECK(seconds("2023-11-14T23:13:20+01:00") == 1'700'000'000);
  CHECK(seconds("2023-11-14T23:13:20+01") == 1'700'000'000);
  CHECK(seconds("2023-11-14T16:43:20-0530") == 1'700'000'000);
  CHECK(seconds("2024-02-29T00:00") == 1'709'164'800);
}

TEST_CASE("a time without a zone is UTC and not marked as zoned") {
  CHECK(parse_iso_time("2023-11-14T22:13:20Z")->zoned);
  CHECK_FALSE(parse_iso_time("2023-11-14T22:13:20")->zoned);
}

TEST_CASE("text that is no date and time of day is absent") {
  for (const char* text : {"", "2023", "1700000000", "2023-11-14", "2023-11-14T",
                           "2023-02-29T00:00", "14.11.2023 22:13", "11/14/2023 22:13",
                           "2023-11/14 22:13",
                           "2023-11-14T24:00", "2023-11-14T22:13:20.", "2023-11-14T22:13:20 CET",
                           "2023-11-14T22:13:20Zx", "2023-11-14X22:13:20"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_iso_time(text));
  }
}
