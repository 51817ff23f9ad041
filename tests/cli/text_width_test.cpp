#include "cli/text_width.h"

#include <doctest/doctest.h>

using namespace cgphase;

TEST_CASE("wide and combining characters count as a terminal shows them") {
  CHECK(display_width("abc") == 3);
  CHECK(display_width("\u00fc") == 1);
  CHECK(display_width("u\u0308") == 1);
  CHECK(display_width("\u6f22\u5b57") == 4);
  CHECK(display_width("\U0001F600") == 2);
}

TEST_CASE("width of malformed UTF-8 is finite") {
  CHECK(display_width("\xff\xfe") == 2);
  CHECK(display_width("a\xe6") == 2);
}

TEST_CASE("text is cut at its width and not within a character") {
  CHECK(shortened("abcdef", 6) == "abcdef");
  CHECK(shortened("abcdefg", 6) == "abc...");
  CHECK(shortened("\u6f22\u5b57\u6f22\u5b57", 6) == "\u6f22...");
  CHECK(shortened("abcdefg", 2) == "..");
}
