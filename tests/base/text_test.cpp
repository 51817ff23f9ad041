#include "base/text.h"

#include <doctest/doctest.h>

#include <array>
#include <random>

using namespace cgphase;

TEST_CASE("printable text keeps single backslashes and escapes control characters") {
  CHECK(printable("a\\x1b[31m \x1b[31m\n") == "a\\x1b[31m \\x1b[31m\\x0a");
  CHECK(printable(printable("\\\x1b\\")) == printable("\\\x1b\\"));
  CHECK(printable("\\") == "\\");
  CHECK(printable("").empty());
}

TEST_CASE("a name of printable UTF-8 is unchanged") {
  CHECK(escape_name("docker-ab12.scope/größe") == "docker-ab12.scope/größe");
}

TEST_CASE("escape sequences, controls and broken UTF-8 become hexadecimal") {
  CHECK(escape_name("\x1b[31mred") == "\\x1b[31mred");
  CHECK(escape_name("a\tb\x7f") == "a\\x09b\\x7f");
  CHECK(escape_name("\xff\xfe") == "\\xff\\xfe");
  CHECK(escape_name("\xc0\xaf") == "\\xc0\\xaf");              // overlong slash
  CHECK(escape_name("\xed\xa0\x80") == "\\xed\\xa0\\x80");     // surrogate
  CHECK(escape_name("\xc2\x9b" "31m") == "\\xc2\\x9b31m");     // C1 control sequence introducer
  CHECK(escape_name("\xe2\x80\xae" "cod") == "\\xe2\\x80\\xae" "cod");  // right-to-left override
}

// rule: SEC-03
TEST_CASE("escaping is injective: a literal backslash differs from an escape") {
  CHECK(escape_name("\\x1b") == "\\\\x1b");
  CHECK(escape_name("\\x1b") != escape_name("\x1b"));
}

TEST_CASE("unescape_name undoes escape_name for any bytes") {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (std::size_t i = random() % 24; i > 0; --i) bytes += static_cast<char>(random() % 256);
    CAPTURE(round);
    CHECK(unescape_name(escape_name(bytes)) == bytes);
  }
}

TEST_CASE("nearest returns a close word and no distant one") {
  constexpr std::array<std::string_view, 3> kKeys = {"interval", "mode", "memory_floor"};
  CHECK(nearest("intervall", kKeys) == "interval");
  CHECK(nearest("memory_flor", kKeys) == "memory_floor");
  CHECK(nearest("zzzzzzzz", kKeys).empty());
}

TEST_CASE("sizes and durations print with units") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1536) == "1.5 KiB");
  CHECK(human_bytes(512.0 * 1024 * 1024) == "512 MiB");
  CHECK(human_duration(0.85) == "850 ms");
  CHECK(human_duration(125) == "2 min 5 s");
  CHECK(human_duration(3 * 3600 + 12 * 60) == "3 h 12 min");
}

TEST_CASE("a duration is rounded to its last printed unit, which decides the format") {
  CHECK(human_duration(0) == "0 s");
  CHECK(human_duration(0.0004) == "0 s");
  CHECK(human_duration(0.9994) == "999 ms");
  CHECK(human_duration(0.9996) == "1 s");
  CHECK(human_duration(1.5) == "1.5 s");
  CHECK(human_duration(1.96) == "2 s");
  CHECK(human_duration(9.96) == "10 s");
  CHECK(human_duration(59.4) == "59 s");
  CHECK(human_duration(59.9) == "1 min 0 s");
  CHECK(human_duration(119.9) == "2 min 0 s");
  CHECK(human_duration(3599.6) == "1 h 0 min");
  CHECK(human_duration(7199) == "2 h 0 min");
  CHECK(human_duration(7140) == "1 h 59 min");
  CHECK(human_duration(-1.5) == "-1.5 s");
  CHECK(human_duration(1e300) == human_duration(1e15));
}
