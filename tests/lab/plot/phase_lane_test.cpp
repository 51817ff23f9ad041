#include "lab/plot/phase_lane.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace cgphase;

namespace {

std::vector<LaneRow> rows_of(const std::vector<int>& phases) {
  std::vector<LaneRow> rows;
  for (std::size_t i = 0; i < phases.size(); ++i)
    rows.push_back({static_cast<double>(i), phases[i]});
  return rows;
}

// Runs of one second each, in changing phases.
std::vector<LaneRun> restless(int seconds) {
  std::vector<LaneRun> runs;
  for (int i = 0; i < seconds; ++i) runs.push_back({double(i), double(i + 1), i % 10 < 7 ? 1 : 0});
  return runs;
}

}  // namespace

TEST_CASE("a phase starts at the row before it, and equal ones are one run") {
  CHECK(lane_runs(rows_of({kLaneNothing, 0, 0, 1})) ==
        std::vector<LaneRun>{{0, 2, 0}, {2, 3, 1}});
}

TEST_CASE("a gap has no run") {
  auto rows = rows_of({0, 0, 0, 0});
  rows[2].gap = true;
  CHECK(lane_runs(rows) == std::vector<LaneRun>{{0, 1, 0}, {2, 3, 0}});
}

TEST_CASE("one row, and rows at the same time, make no run") {
  CHECK(lane_runs(rows_of({0})).empty());
  CHECK(lane_runs(std::vector<LaneRow>{{5, 0}, {5, 1}, {4, 1}}).empty());
}

TEST_CASE("few runs stay as they are") {
  const auto runs = lane_runs(rows_of({0, 0, 1, 0}));
  CHECK(thinned(runs, 0, 3, 3) == runs);
}

TEST_CASE("each column of many runs shows the phase that took most of it") {
  const auto runs = thinned(restless(1000), 0, 1000, 100);
  CHECK(runs == std::vector<LaneRun>{{0, 1000, 1}});
}

TEST_CASE("the lowest of equally long phases is shown, and empty columns stay empty") {
  std::vector<LaneRun> runs;
  for (int i = 0; i < 4; ++i) runs.push_back({i * 0.5, i * 0.5 + 0.5, i % 2 == 0 ? 3 : 2});
  runs.push_back({8, 10, 5});
  CHECK(thinned(runs, 0, 10, 4) == std::vector<LaneRun>{{0, 2.5, 2}, {7.5, 10, 5}});
}

TEST_CASE("the seconds of a phase are those of its runs") {
  const auto seconds = lane_seconds(std::vector<LaneRun>{{0, 2, 0}, {2, 3, 1}, {3, 7, 0}});
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

TEST_CASE("a lane built row by row equals that of all rows, thinned or not") {
  for (const int rows : {1, 5, 90, 3000}) {
    CAPTURE(rows);
    std::vector<LaneRow> all;
    for (int i = 0; i < rows; ++i)
      all.push_back({i + 0.25 * (i % 3) - (i % 50 == 49 ? 3 : 0), i * 7919 % 11 % 4 - 1,
                     i % 37 == 36});
    Lane lane(0, rows, 100);
    for (const LaneRow& row : all) lane.add(row);
    CHECK(lane.runs() == thinned(lane_runs(all), 0, rows, 100));
    CHECK(lane.seconds() == lane_seconds(lane_runs(all)));
  }
}
