#include "base/parse.h"

#include <doctest/doctest.h>

#include <bit>
#include <charconv>
#include <string>

using namespace cgphase;

TEST_CASE("an unsigned number is read up to its maximum") {
  CHECK(parse_u64("0") == 0);
  CHECK(parse_u64("18446744073709551615") == 18446744073709551615ULL);
}

TEST_CASE("a number above the maximum of an unsigned number is absent") {
  CHECK_FALSE(parse_u64("18446744073709551616"));
}

TEST_CASE("anything around an unsigned number makes it absent") {
  for (const char* text : {"", " 1", "1 ", "-1", "+1", "0x10", "max", "1.0"})
    CHECK_FALSE(parse_u64(text));
}

TEST_CASE("a floating-point number must be finite and complete") {
  CHECK(parse_double("-2.5e3") == -2500.0);
  for (const char* text : {"", "nan", "inf", "-inf", "1e999", "1.5x"})
    CHECK_FALSE(parse_double(text));
}

TEST_CASE("a floating-point number reads as std::from_chars reads it, to the last bit") {
  std::string unlike;
  std::uint64_t state = 1;
  const auto next = [&] { return state = state * 6364136223846793005U + 1442695040888963407U; };
  for (int i = 0; i < 200'000; ++i) {
    std::string text = std::to_string((next() >> 8) % 1'000'000'000'000'000'000);
    text.resize(1 + (next() >> 33) % text.size());
    const std::size_t point = (next() >> 33) % (text.size() + 3);
    if (point <= text.size()) text.insert(point, 1, '.');
    if ((next() >> 40) % 3 == 0) text.insert(0, 1, '-');
    double expected = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, expected);
    const std::optional<double> value = parse_double(text);
    const bool whole = error == std::errc{} && stop == end;
    const bool same = value.has_value() == whole &&
                      (!whole || std::bit_cast<std::uint64_t>(*value) ==
                                     std::bit_cast<std::uint64_t>(expected));
    if (!same) unlike += text + " ";
  }
  CHECK(unlike == "");
}

TEST_CASE("lines are returned one by one, the last also without a newline") {
  std::string_view rest = "a 1\n\nb 2";
  std::string_view line;
  CHECK(next_line(rest, line));
  CHECK(line == "a 1");
  CHECK(next_line(rest, line));
  CHECK(line.empty());
  CHECK(next_line(rest, line));
  CHECK(line == "b 2");
  CHECK_FALSE(next_line(rest, line));
}

TEST_CASE("any blanks separate words") {
  std::string_view rest = "  50000\t100000\n";
  std::string_view word;
  CHECK(next_word(rest, word));
  CHECK(word == "50000");
  CHECK(next_word(rest, word));
  CHECK(word == "100000");
  CHECK_FALSE(next_word(rest, word));
}

TEST_CASE("sizes take binary suffixes") {
  CHECK(parse_bytes("512") == 512);
  CHECK(parse_bytes("1K") == 1024);
  CHECK(parse_bytes("1.5 GiB") == 1610612736ULL);
  CHECK(parse_bytes("2m") == 2097152);
  for (const char* text : {"", "K", "-1M", "1Q", "1 GB2", "99999999T"}) {
    CHECK_FALSE(parse_bytes(text));
  }
}

TEST_CASE("durations need a unit") {
  CHECK(parse_duration_ns("150ms") == 150'000'000);
  CHECK(parse_duration_ns("5 min") == 300'000'000'000);
  CHECK(parse_duration_ns("1h") == 3'600'000'000'000);
  for (const char* text : {"", "5", "-1s", "1y", "s"}) CHECK_FALSE(parse_duration_ns(text));
}

TEST_CASE("a share is a number or a percentage") {
  CHECK(parse_share("0.001") == 0.001);
  CHECK(parse_share("0.1 %") == 0.1 / 100);
  CHECK(parse_share(" 5% ") == 0.05);
  CHECK_FALSE(parse_share("%"));
  CHECK_FALSE(parse_share("a lot"));
  CHECK_FALSE(parse_share(""));
}
