#include "cli/output/text_width.h"

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

TEST_CASE("shortened names that differ at either end stay different") {
  CHECK(shortened_name("ml-platform-training-pipeline-worker-1", 32) ==
        "ml-platform-tr...peline-worker-1");
  CHECK(shortened_name("ml-platform-training-pipeline-worker-2", 32) ==
        "ml-platform-tr...peline-worker-2");
}

TEST_CASE("a name is cut at its width, in its middle and not within a character") {
  CHECK(shortened_name("abcdef", 6) == "abcdef");
  CHECK(shortened_name("abcdefg", 6) == "a...fg");
  CHECK(shortened_name("abcdefg", 4) == "...g");
  CHECK(shortened_name("abcdefg", 3) == "...");
  CHECK(shortened_name("abcdefg", 2) == "..");
  CHECK(shortened_name("abcdefg", 0).empty());
  // Width that the head cannot use goes to the tail.
  CHECK(shortened_name("\u6f22\u5b57\u6f22\u5b57", 6) == "...\u5b57");
  CHECK(shortened_name("\u6f22\u5b57\u6f22\u5b57", 7) == "\u6f22...\u5b57");
  // A combining mark stays with its character.
  CHECK(shortened_name("abcdu\u0308fg", 6) == "a...fg");
  CHECK(shortened_name("u\u0308bcdefu\u0308", 5) == "u\u0308...u\u0308");
  CHECK(display_width(shortened_name(std::string(64, '\xff'), 5)) <= 5);
}
