#include "lab/plot/panel.h"

#include <algorithm>

namespace cgphase {
namespace {

// of path data, so that files can be compared line by line
constexpr std::size_t kStepsPerLine = 12;
constexpr double kLegendLine = 18, kLegendMark = 22, kLegendGap = 18, kLegendFont = 12;

// Builds path data, command by command.
class PathData {
 public:
  template <class... Numbers>
  void add(char command, Numbers... numbers) {
    if (steps_++ % kStepsPerLine == 0 && !text_.empty()) text_ += '\n';
    text_ += command;
    bool first = true;
    for (const double number : {numbers...}) {
      if (!first) text_ += ' ';
      text_ += svg_number(number);
      first = false;
    }
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::size_t steps_ = 0;
};

}  // namespace

std::string line_path(std::span<const LinePoint> points, const Scale& x, const Scale& y) {
  PathData path;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const LinePoint& point = points[i];
    path.add(point.begins ? 'M' : 'L', x(point.x), y(point.y));
    const bool alone = point.begins && (i + 1 == points.size() || points[i + 1].begins);
    if (alone) path.add('H', x(point.x));
  }
  return path.take();
}

std::string step_path(std::span<const LinePoint> points, const Scale& x, const Scale& y) {
  PathData path;
  double height = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const LinePoint& point = points[i];
    if (point.begins) {
      path.add('M', x(point.x), y(point.y));
    } else if (point.y != height) {
      path.add('H', x(point.x));
      path.add('V', y(point.y));
    }
    height = point.y;
    if (i + 1 == points.size() || points[i + 1].begins) path.add('H', x(point.x));
  }
  return path.take();
}

std::string box_path(const Box& box) {
  PathData path;
  path.add('M', box.x, box.y);
  path.add('H', box.right());
  path.add('V', box.bottom());
  path.add('H', box.x);
  return path.take() + "Z";
}

void draw_value_axis(Svg& svg, const Box& panel, const Ticks& ticks, const Scale& y,
                     std::string_view title) {
  svg.text({panel.x, panel.y - 7}, title, {.size = 12});
  for (std::size_t i = 0; i < ticks.values.size(); ++i) {
    const double height = y(ticks.values[i]);
    svg.line({panel.x, height}, {panel.right(), height},
             {.color = i == 0 ? kFaintInk : kGridColor});
    svg.text({panel.x - 6, height + 4}, ticks.label(i),
             {.size = kTickFont, .anchor = Anchor::end, .color = kFaintInk});
  }
}

double draw_legend(Svg& svg, Point corner, double width, std::span<const LegendEntry> entries) {
  Point at = corner;
  for (const LegendEntry& entry : entries) {
    const std::string text = fitted(entry.text, kLegendFont, width - kLegendMark);
    const double needed = kLegendMark + text_pixels(text, kLegendFont);
    if (at.x > corner.x && at.x + needed > corner.x + width)
      at = {corner.x, at.y + kLegendLine};
    const Box swatch{at.x, at.y + 3, 16, 12};
    if (entry.mark == LegendEntry::Mark::line) {
      svg.line({swatch.x, at.y + 9}, {swatch.right(), at.y + 9},
               {.color = entry.color, .width = 2, .dash = entry.dash});
    } else {
      svg.rectangle(swatch, entry.color);
      if (!entry.overlay.empty()) svg.rectangle(swatch, entry.overlay);
    }
    svg.text({at.x + kLegendMark, at.y + 13}, text, {.size = kLegendFont});
    at.x += needed + kLegendGap;
  }
  return at.y + kLegendLine;
}

}  // namespace cgphase
