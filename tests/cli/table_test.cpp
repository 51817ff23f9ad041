#include "cli/table.h"

#include <doctest/doctest.h>

using namespace cgphase;

namespace {
const TextStyle kPlain{};
}

TEST_CASE("columns are as wide as their widest cell") {
  Table table({{"NAME", Table::Align::left}, {"CPU", Table::Align::right}});
  table.add({{"a"}, {"10.00"}});
  table.add({{"longer"}, {"1"}});
  CHECK(table.text(kPlain) ==
        "NAME      CPU\n"
        "a       10.00\n"
        "longer      1\n");
}

TEST_CASE("without a legend there are no titles and no room for them") {
  Table table({{"LONG TITLE", Table::Align::left}, {"X", Table::Align::left}});
  table.add({{"a"}, {"b"}});
  TextStyle style;
  style.legend = false;
  CHECK(table.text(style) == "a  b\n");
}

TEST_CASE("a table without rows is its titles") {
  CHECK(Table({{"A"}, {"B"}}).text(kPlain) == "A  B\n");
}

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

TEST_CASE("colour does not shift columns") {
  Table table({{"A", Table::Align::left}, {"B", Table::Align::left}});
  table.add({{"x", Tone::bad}, {"y"}});
  TextStyle style;
  style.color = true;
  style.legend = false;
  CHECK(table.text(style) == "\x1b[31mx\x1b[0m  y\n");
}

TEST_CASE("CSV quotes commas, quotes and line feeds and nothing else") {
  CHECK(csv_record({"a", "b c", "1"}) == "a,b c,1\n");
  CHECK(csv_record({"a,b", "say \"x\"", "l\nm"}) == "\"a,b\",\"say \"\"x\"\"\",\"l\nm\"\n");
  CHECK(csv_record({"", ""}) == ",\n");
}
