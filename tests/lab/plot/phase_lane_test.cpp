#include "lab/plot/phase_lane.h"

#include <doctest/doctest.h>

#include <vector>

using namespace cgphase;

namespace {

Lane lane_of(const std::vector<LaneRow>& rows, double from, double to, int columns) {
  Lane lane(from, to, columns);
  for (const LaneRow& row : rows) lane.add(row);
  return lane;
}

std::vector<LaneRow> rows_of(const std::vector<int>& phases, double step = 1) {
  std::vector<LaneRow> rows;
  for (std::size_t i = 0; i < phases.size(); ++i)
    rows.push_back({static_cast<double>(i) * step, phases[i]});
  return rows;
}

}  // namespace

TEST_CASE("a phase starts at the row before it, and equal ones are one run") {
  CHECK(lane_of(rows_of({kLaneNothing, 0, 0, 1}), 0, 3, 100).runs() ==
        std::vector<LaneRun>{{0, 2, 0}, {2, 3, 1}});
}

TEST_CASE("a gap has no run") {
  auto rows = rows_of({0, 0, 0, 0});
  rows[2].gap = true;
  CHECK(lane_of(rows, 0, 3, 100).runs() == std::vector<LaneRun>{{0, 1, 0}, {2, 3, 0}});
}

TEST_CASE("one row, and rows at the same time, make no run") {
  CHECK(lane_of(rows_of({0}), 0, 1, 100).runs().empty());
  CHECK(lane_of({{5, 0}, {5, 1}, {4, 1}}, 4, 5, 100).runs().empty());
}

TEST_CASE("few runs stay as they are") {
  CHECK(lane_of(rows_of({0, 0, 1, 0}), 0, 3, 3).runs() ==
        std::vector<LaneRun>{{0, 1, 0}, {1, 2, 1}, {2, 3, 0}});
}

TEST_CASE("each column of many runs shows the phase that took most of it") {
  std::vector<int> restless = {1};
  for (int i = 0; i < 1000; ++i) restless.push_back(i % 10 < 7 ? 1 : 0);
  CHECK(lane_of(rows_of(restless), 0, 1000, 100).runs() ==
        std::vector<LaneRun>{{0, 1000, 1}});
}

TEST_CASE("the lowest of equally long phases is shown, and empty columns stay empty") {
  std::vector<LaneRow> rows = rows_of({9, 3, 2, 3, 2}, 0.5);
  rows.push_back({8, 5, true});
  rows.push_back({10, 5});
  CHECK(lane_of(rows, 0, 10, 4).runs() == std::vector<LaneRun>{{0, 2.5, 2}, {7.5, 10, 5}});
}

TEST_CASE("the seconds of a phase are those of its runs") {
  const auto seconds = lane_of(rows_of({0, 0, 0, 1, 0, 0, 0, 0}), 0, 7, 100).seconds();
  CHECK(seconds.at(0) == 6);
  CHECK(seconds.at(1) == 1);
}

TEST_CASE("unknown is striped, nothing is grey, and repeated colours get stripes") {
  CHECK(lane_fill(kLaneUnknown, 5).fill == "url(#plot-unknown)");
  CHECK(lane_fill(kLaneNothing, 5).fill == "#d9d9d9");
  CHECK(lane_fill(8, 32).overlay.empty());
  CHECK(lane_fill(9, 32).overlay == "url(#plot-again-1)");
  CHECK(lane_fill(31, 32).overlay == "url(#plot-again-3)");
  Svg few, many;
  define_stripes(few, 9);
  define_stripes(many, 32);
  CHECK(few.document(1, 1, "", "").find("plot-again") == std::string::npos);
  CHECK(many.document(1, 1, "", "").find("id=\"plot-again-3\"") != std::string::npos);
}

TEST_CASE("a letter is drawn if there is room for it") {
  Svg svg;
  draw_lane(svg, {0, 0, 100, 16}, {0, 100, 0, 100},
            std::vector<LaneRun>{{0, 10, 0}, {10, 90, 1}, {90, 100, kLaneUnknown}}, 2, {});
  const std::string text = svg.document(1, 1, "", "");
  CHECK(text.find(">A</text>") == std::string::npos);
  CHECK(text.find(">B</text>") != std::string::npos);
}
