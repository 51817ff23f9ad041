#include "traces/trace_cell.h"

#include <doctest/doctest.h>

using namespace cgphase;

TEST_CASE("words for a missing value match in any case, and numbers do not match") {
  for (const char* word : {"", "NaN", "nan", "NAN", "NA", "N/A", "n/a", "[N/A]", "null", "None",
                           "undefined", "-", "--"})
    CHECK_MESSAGE(is_missing(word), word);
  for (const char* word : {"0", "-1", "naan", "max", "missing value"})
    CHECK_FALSE_MESSAGE(is_missing(word), word);
}

TEST_CASE("infinity is a word, or a number too large for a double") {
  for (const char* text : {"inf", "+Inf", "-inf", "Infinity", "1e999"}) CHECK(is_infinite(text));
  for (const char* text : {"", "1e99", "nan", "infinite", "1e999x"}) CHECK_FALSE(is_infinite(text));
}

TEST_CASE("a decimal comma is read after a cell with an unambiguous one") {
  NumberFormat numbers;
  CHECK_FALSE(numbers.read("1,234"));
  CHECK(numbers.why_not("1,234").starts_with("may have a decimal comma"));
  CHECK(numbers.read("0,25") == 0.25);
  CHECK(numbers.read("1,234") == 1.234);
  CHECK(numbers.read("-1,5e-2") == -0.015);
  CHECK(numbers.read("1234,567") == 1234.567);
  CHECK(numbers.read("7") == 7);
  CHECK_FALSE(numbers.read("0.25"));
  CHECK(numbers.why_not("0.25").starts_with("contradicts the numbers before it"));
}

TEST_CASE("a decimal comma after decimal points is refused") {
  NumberFormat numbers;
  CHECK(numbers.read("0.25") == 0.25);
  CHECK_FALSE(numbers.read("0,25"));
  CHECK(numbers.why_not("0,25").starts_with("contradicts the numbers before it"));
  CHECK_FALSE(numbers.read("1,234"));
}

TEST_CASE("why_not names thousands separators, units and percent signs") {
  NumberFormat numbers;
  for (const char* text : {"209,715,200", "2,147,483.5"}) {
    CHECK_FALSE(numbers.read(text));
    CHECK(numbers.why_not(text).starts_with("has thousands separators"));
  }
  for (const char* text : {"200.0MiB", "12 kB", "512.3MiB / 2GiB"}) {
    CHECK_FALSE(numbers.read(text));
    CHECK(numbers.why_not(text).starts_with("has a unit"));
  }
  CHECK(numbers.why_not("12%").starts_with("is a percentage"));
  CHECK(numbers.why_not("fast") == "is not a number");
}
