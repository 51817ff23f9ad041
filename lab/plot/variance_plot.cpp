#include "lab/plot/variance_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/text.h"
#include "lab/plot/palette.h"
#include "lab/plot/panel.h"

namespace cgphase {
namespace {

constexpr double kWidth = 760, kLeft = 76, kRight = 24;
constexpr Box kPanel{kLeft, 114, kWidth - kLeft - kRight, 300};
constexpr double kHeight = kPanel.bottom() + 58;
constexpr int kTicks = 6;
constexpr std::string_view kWithinColor = kOkabeIto[0].fill, kBetweenColor = kOkabeIto[5].fill;
constexpr std::string_view kBetweenDash = "6 3", kElbowDash = "2 3";

std::vector<LinePoint> line_of(const std::vector<double>& values) {
  std::vector<LinePoint> points;
  for (std::size_t i = 0; i < values.size(); ++i)
    points.push_back({static_cast<double>(i + 1), values[i], i == 0});
  return points;
}

std::vector<double> between(std::vector<double> within) {
  const double total = within.front();
  for (double& value : within) value = std::max(total - value, 0.0);
  return within;
}

void draw_line(Svg& svg, const std::vector<LinePoint>& points, const Scale& x, const Scale& y,
               const Stroke& stroke) {
  svg.path(line_path(points, x, y), stroke);
  for (const LinePoint& point : points) svg.circle({x(point.x), y(point.y)}, 3.5, stroke.color);
}

void draw_count_axis(Svg& svg, const Scale& x, std::size_t most) {
  for (std::size_t k = 1; k <= most; ++k) {
    const double at = x(static_cast<double>(k));
    svg.line({at, kPanel.bottom()}, {at, kPanel.bottom() + 5}, {.color = kFaintInk});
    svg.text({at, kPanel.bottom() + 18}, fmt::format("{}", k),
             {.size = kTickFont, .anchor = Anchor::middle, .color = kFaintInk});
  }
  svg.text({kPanel.x + kPanel.width / 2, kPanel.bottom() + 38}, "number of clusters, k",
           {.anchor = Anchor::middle});
}

// The text is between the two lines, to the left of its own line if there is no room to the right.
void draw_elbow(Svg& svg, const Scale& x, int elbow) {
  const std::string text = fmt::format("elbow: k = {}", elbow);
  const double at = x(elbow);
  svg.line({at, kPanel.y}, {at, kPanel.bottom()}, {.width = 1.5, .dash = kElbowDash});
  const bool room = at + 6 + text_pixels(text, 12) < kPanel.right();
  svg.text({room ? at + 6 : at - 6, kPanel.y + kPanel.height / 2 + 4}, text,
           {.anchor = room ? Anchor::start : Anchor::end, .bold = true});
}

std::string description_of(const VariancePlot& plot) {
  std::string text =
      escape_name(plot.points) + ". Sum of squared distances within clusters by their number:";
  for (std::size_t i = 0; i < plot.within.size(); ++i)
    text += fmt::format(" {}: {:.4g}{}", i + 1, plot.within[i],
                        i + 1 < plot.within.size() ? "," : ".");
  return text + fmt::format(" The elbow is at {}.", plot.elbow);
}

}  // namespace

std::string draw_variance(const VariancePlot& plot) {
  CHECK_INVARIANT(!plot.within.empty());
  const std::string title = "Clusters in " + escape_name(plot.source);
  Svg svg;
  svg.text({kLeft, 30}, fitted(title, 17, kPanel.width), {.size = 17, .bold = true});
  svg.text({kLeft, 50}, fitted(escape_name(plot.points), 12, kPanel.width), {.color = kFaintInk});
  const std::array<LegendEntry, 2> legend = {
      {{"within clusters (SSW, cohesion)", kWithinColor, LegendEntry::Mark::line},
       {"between clusters (SSB, separation)", kBetweenColor, LegendEntry::Mark::line,
        kBetweenDash}}};
  draw_legend(svg, {kLeft, 60}, kPanel.width, legend);
  const Ticks ticks = value_ticks(plot.within.front(), kTicks);
  const Scale y{0, ticks.top(), kPanel.bottom(), kPanel.y};
  const Scale x{0.5, static_cast<double>(plot.within.size()) + 0.5, kPanel.x, kPanel.right()};
  draw_value_axis(svg, kPanel, ticks, y, "sum of squared distances");
  draw_count_axis(svg, x, plot.within.size());
  draw_elbow(svg, x, plot.elbow);
  draw_line(svg, line_of(between(plot.within)), x, y,
            {.color = kBetweenColor, .width = 2, .dash = kBetweenDash});
  draw_line(svg, line_of(plot.within), x, y, {.color = kWithinColor, .width = 2});
  return svg.document(kWidth, kHeight, title, description_of(plot));
}

}  // namespace cgphase
