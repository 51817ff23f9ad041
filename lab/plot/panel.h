// What plots are put together from: axes, lines and a legend.
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

// Values onto pixels, linearly; all to `begin` where they do not span anything.
struct Scale {
  double from = 0, to = 1;
  double begin = 0, end = 1;
  double operator()(double value) const {
    return to > from ? begin + (value - from) / (to - from) * (end - begin) : begin;
  }
};

// Path data of a line through the points, and of one that holds each value until the next. A point
// by itself is a dot.
std::string line_path(std::span<const LinePoint> points, const Scale& x, const Scale& y);
std::string step_path(std::span<const LinePoint> points, const Scale& x, const Scale& y);

// Path data of a rectangle, to be put together with others.
std::string box_path(const Box& box);

// Horizontal grid lines with their numbers to the left of the panel, and what they are above it.
// `y` is the scale of the ticks' values.
void draw_value_axis(Svg& svg, const Box& panel, const Ticks& ticks, const Scale& y,
                     std::string_view title);

struct LegendEntry {
  enum class Mark { line, swatch };
  std::string text;
  std::string_view color;   // of the line, or the swatch's fill
  Mark mark = Mark::swatch;
  std::string_view dash = "";
  std::string_view overlay = "";  // a second fill on the swatch
};

// In lines of at most `width` pixels. Returns the y below the last.
double draw_legend(Svg& svg, Point corner, double width, std::span<const LegendEntry> entries);

}  // namespace cgphase
