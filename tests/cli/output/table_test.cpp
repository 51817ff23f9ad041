#include "cli/output/table.h"

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

TEST_CASE("a table without a legend has no titles and no space for them") {
  Table table({{"LONG TITLE", Table::Align::left}, {"X", Table::Align::left}});
  table.add({{"a"}, {"b"}});
  TextStyle style;
  style.legend = false;
  CHECK(table.text(style) == "a  b\n");
}

TEST_CASE("a table without rows has only titles") {
  CHECK(Table({{"A"}, {"B"}}).text(kPlain) == "A  B\n");
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
