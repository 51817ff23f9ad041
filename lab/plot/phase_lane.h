// The lane under a plot that tells which phase was when. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "lab/plot/panel.h"

namespace cgphase {

// What a lane shows: the index of a phase, or one of these.
inline constexpr int kLaneUnknown = -1;  // hatched
inline constexpr int kLaneNothing = -2;  // not enough history, no label: grey

// One row of an execution: its phase holds from the row before it on, or from itself after a gap.
struct LaneRow {
  double seconds = 0;
  int phase = kLaneNothing;
  bool gap = false;
};

struct LaneRun {
  double from = 0, to = 0;  // seconds
  int phase = kLaneNothing;
  friend bool operator==(const LaneRun&, const LaneRun&) = default;
};

// Rows of one phase put together, in the order of the rows; runs without length are left out.
std::vector<LaneRun> lane_runs(std::span<const LaneRow> rows);

// The runs themselves, or where there are more than `columns` (>= 1) one run per column of [from,
// to] and stretch of equal columns: a column shows the phase that took most of it, of equal ones
// the one with the lowest index.
std::vector<LaneRun> thinned(std::vector<LaneRun> runs, double from, double to, int columns);

// A lane that is put together row by row: in memory are its columns and as many runs.
class Lane {
 public:
  Lane(double from, double to, int columns);

  void add(const LaneRow& row);
  std::vector<LaneRun> runs() const;      // as thinned() of lane_runs()
  std::map<int, double> seconds() const;  // as lane_seconds() of lane_runs()

 private:
  void end_run();

  double from_, to_;
  std::size_t columns_;
  std::optional<double> last_;  // seconds of the last row
  std::optional<LaneRun> open_;
  std::vector<LaneRun> runs_;   // the first, one more than there are columns
  std::vector<std::map<int, double>> by_column_;
  std::map<int, double> seconds_;
};

// Seconds per phase.
std::map<int, double> lane_seconds(std::span<const LaneRun> runs);

// How a lane is filled: phase `phase` of `count`.
struct LaneFill {
  std::string_view fill;
  std::string_view overlay;  // stripes; "" where there are none
};
LaneFill lane_fill(int phase, std::size_t count);

// The stripes that lane_fill() names, for phases below `count`.
void define_stripes(Svg& svg, std::size_t count);

// The runs in `box`, with the letter of the phase where it has room, and faintly in `behind`, the
// panels above. `count` is that of the phases there are.
void draw_lane(Svg& svg, const Box& box, const Scale& x, std::span<const LaneRun> runs,
               std::size_t count, std::span<const Box> behind);

}  // namespace cgphase
