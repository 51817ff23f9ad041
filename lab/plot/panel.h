// Parts of plots: axes, lines and a legend.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/plot/envelope.h"
#include "lab/plot/svg.h"
#include "lab/plot/ticks.h"

namespace cgphase {

inline constexpr double kTickFont = 11;

// Maps values to pixels linearly; maps everything to `begin` if the span is 0.
struct Scale {
  double from = 0, to = 1;
  double begin = 0, end = 1;
  double operator()(double value) const {
    return to > from ? begin + (value - from) / (to - from) * (end - begin) : begin;
  }
};

// Path data of a line through the points, and of a step line that keeps each value until the next
// point. A single point is a dot.
std::string line_path(std::span<const LinePoint> points, const Scale& x, const Scale& y);
std::string step_path(std::span<const LinePoint> points, const Scale& x, const Scale& y);

// Path data of a rectangle, to be joined with others.
std::string box_path(const Box& box);

// Draws horizontal grid lines, their numbers to the left of the panel, and the title above it. `y`
// is the scale of the tick values.
void draw_value_axis(Svg& svg, const Box& panel, const Ticks& ticks, const Scale& y,
                     std::string_view title);

struct LegendEntry {
  enum class Mark { line, swatch };
  std::string text;
  std::string_view color;   // colour of the line, or fill of the swatch
  Mark mark = Mark::swatch;
  std::string_view dash = "";
  std::string_view overlay = "";  // a second fill on the swatch
};

// Draws the legend in lines of at most `width` pixels. Returns the y below the last line.
double draw_legend(Svg& svg, Point corner, double width, std::span<const LegendEntry> entries);

}  // namespace cgphase
