// The lane under a plot that shows the phases over time. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "lab/plot/panel.h"

namespace cgphase {

// Content of a lane: the index of a phase, or one of these.
inline constexpr int kLaneUnknown = -1;  // hatched
inline constexpr int kLaneNothing = -2;  // not enough history, no label: grey

// One row of an execution. Its phase lasts from the row before it; after a gap, from the row
// itself.
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

// Joins successive rows of one phase into runs, in order, without runs of no length.
//
// With more runs than `columns` (>= 1), a run is a stretch of equal columns of [from, to]. A column
// shows the phase that took most of it; of equal ones, the lowest index. Memory: the columns and as
// many runs.
class Lane {
 public:
  Lane(double from, double to, int columns);

  void add(const LaneRow& row);
  std::vector<LaneRun> runs() const;
  std::map<int, double> seconds() const;  // of each phase

 private:
  void end_run();

  double from_, to_;
  std::size_t columns_;
  std::optional<double> last_;  // seconds of the last row
  std::optional<LaneRun> open_;
  std::vector<LaneRun> runs_;   // the first runs, one more than there are columns
  std::vector<std::map<int, double>> by_column_;
  std::map<int, double> seconds_;
};

// Fill of phase `phase` of `count`.
struct LaneFill {
  std::string_view fill;
  std::string_view overlay;  // stripes; "": none
};
LaneFill lane_fill(int phase, std::size_t count);

// Defines the stripes that lane_fill() names, for phases below `count`.
void define_stripes(Svg& svg, std::size_t count);

// Draws the runs in `box`, with the letter of the phase if there is room, and faintly in `behind`,
// the panels above. `count` is the number of phases.
void draw_lane(Svg& svg, const Box& box, const Scale& x, std::span<const LaneRun> runs,
               std::size_t count, std::span<const Box> behind);

}  // namespace cgphase
