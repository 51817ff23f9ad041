#include "lab/plot/panel.h"

#include <doctest/doctest.h>

#include "tests/lab/plot/xml_check.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {
const Scale kX{0, 10, 100, 200};
const Scale kY{0, 1, 50, 0};
}  // namespace

TEST_CASE("a scale maps its ends, also upside down, and an empty span to its start") {
  CHECK(kX(0) == 100);
  CHECK(kX(10) == 200);
  CHECK(kY(1) == 0);
  CHECK(kY(0.5) == 25);
  CHECK(Scale{3, 3, 7, 9}(3) == 7);
}

TEST_CASE("a line restarts at a point that begins one, and a single point is a dot") {
  const std::vector<LinePoint> points{{0, 0, true}, {5, 1, false}, {10, 0, true}};
  CHECK(line_path(points, kX, kY) == "M100 50L150 0M200 50H200");
}

TEST_CASE("a stepped line keeps each value until the next, in one stroke if nothing changes") {
  const std::vector<LinePoint> points{
      {0, 0, true}, {1, 0, false}, {2, 1, false}, {3, 1, false}, {9, 0, true}, {10, 0, false}};
  CHECK(step_path(points, kX, kY) == "M100 50H120V0H130M190 50H200");
}

TEST_CASE("no points make no path") {
  CHECK(line_path({}, kX, kY).empty());
  CHECK(step_path({}, kX, kY).empty());
}

TEST_CASE("a wide legend continues in the next line") {
  const std::vector<LegendEntry> entries(3, {"0123456789", "#000000"});
  Svg wide, narrow;
  CHECK(draw_legend(wide, {0, 10}, 1000, entries) == 28);
  CHECK(draw_legend(narrow, {0, 10}, 250, entries) == 46);
  CHECK(draw_legend(narrow, {0, 10}, 20, entries) == 64);
  CHECK(xml_fault(narrow.document(10, 10, "", "")) == "");
}
