#include "lab/replay/pareto_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/text.h"
#include "lab/plot/palette.h"
#include "lab/plot/panel.h"
#include "model/phase.h"
#include "model/scalar_math.h"

namespace cgphase {
namespace {

constexpr double kWidth = 860, kLeft = 64, kRight = 28, kPanelHeight = 400;
constexpr double kPlotWidth = kWidth - kLeft - kRight;
constexpr double kHeadroom = 14;  // for discs at the top
constexpr int kTicks = 6;
// Points without samples over are left of the axis break; decades are right of it.
constexpr double kNeverWidth = 60, kBreakWidth = 14;
constexpr double kLeastOver = 1e-4;
constexpr int kLeastExponent = -4, kFewestDecades = 3;  // at least to 10 %
constexpr std::string_view kReachedFill = "#ececec", kReachedLine = "#8a8a8a";
constexpr std::string_view kOracleDash = "2 3";

double decades(double over) { return portable_log(over) / portable_log(10); }

// Maps shares of samples over to pixels: 0 separately, then decades.
class OverScale {
 public:
  OverScale(const Box& panel, double most) : panel_(panel) {
    while (last_ < 0 && decades(std::max(most, kLeastOver)) > last_ + 1e-9) ++last_;
  }
  double operator()(double over) const {
    if (!(over > 0)) return panel_.x + kNeverWidth / 2;
    return at(std::max(decades(std::max(over, kLeastOver)), double{kLeastExponent}));
  }
  double at(double exponent) const {
    const double begin = panel_.x + kNeverWidth + kBreakWidth;
    const double share = (exponent - kLeastExponent) / (last_ - kLeastExponent);
    return begin + share * (panel_.right() - begin);
  }
  int last() const { return last_; }

 private:
  Box panel_;
  int last_ = kLeastExponent + kFewestDecades;  // last exponent of the decades
};

std::vector<ParetoPoint> front_of(const std::vector<ParetoPoint>& marks) {
  std::vector<ParetoPoint> front;
  for (const std::size_t i : pareto_front(marks)) front.push_back(marks[i]);
  return front;
}

double most_over(const ParetoPlot& plot) {
  double most = 0;
  for (const ParetoCurve& curve : plot.curves)
    for (const ParetoPoint& mark : curve.marks) most = std::max(most, mark.violation);
  for (const ParetoPoint& mark : front_of(plot.controls)) most = std::max(most, mark.violation);
  return most;
}

double most_allocated(const ParetoPlot& plot) {
  double most = plot.oracle.value_or(0);
  for (const ParetoCurve& curve : plot.curves)
    for (const ParetoPoint& mark : curve.marks) most = std::max(most, mark.cost);
  for (const ParetoPoint& mark : front_of(plot.controls)) most = std::max(most, mark.cost);
  return 100 * most;
}

// The area that the controls reach, up to the top and the right of the panel.
void draw_reached(Svg& svg, const Box& panel, const OverScale& x, const Scale& y,
                  const std::vector<ParetoPoint>& front) {
  if (front.empty()) return;
  std::string line, area;
  for (const ParetoPoint& mark : front) {
    const std::string right = svg_number(x(mark.violation));
    const std::string height = svg_number(y(100 * mark.cost));
    line += line.empty() ? fmt::format("M{} {}", right, height)
                         : fmt::format("H{}V{}", right, height);
  }
  line += fmt::format("H{}", svg_number(panel.right()));
  area = fmt::format("M{} {}L{}V{}Z", svg_number(x(front.front().violation)), svg_number(panel.y),
                     line.substr(1), svg_number(panel.y));
  svg.shape(area, kReachedFill);
  svg.path(line, {.color = kReachedLine, .width = 1.5});
}

void draw_over_axis(Svg& svg, const Box& panel, const OverScale& x) {
  const double y = panel.bottom();
  const auto tick = [&](double at, const std::string& label) {
    svg.line({at, y}, {at, y + 5}, {.color = kFaintInk});
    svg.text({at, y + 18}, label,
             {.size = kTickFont, .anchor = Anchor::middle, .color = kFaintInk});
  };
  tick(x(0), "never");
  for (int exponent = kLeastExponent; exponent <= x.last(); ++exponent) {
    const double at = x.at(exponent);
    svg.line({at, panel.y}, {at, y}, {.color = kGridColor});
    double percent = 100;
    for (int i = exponent; i < 0; ++i) percent /= 10;
    tick(at, fmt::format("{:.6g} %", percent));
  }
  const double cut = panel.x + kNeverWidth + kBreakWidth / 2 - 6;
  svg.rectangle({cut - 1, y - 2, 6, 4}, kPaper);
  for (const double at : {cut - 2, cut + 4})
    svg.line({at - 2, y + 5}, {at + 2, y - 5}, {.color = kFaintInk});
  svg.text({panel.x + panel.width / 2, y + 40}, "samples over the limit, share (logarithmic)",
           {.anchor = Anchor::middle});
}

void draw_oracle(Svg& svg, const Box& panel, const Scale& y, double oracle) {
  const double height = y(100 * oracle);
  svg.line({panel.x, height}, {panel.right(), height}, {.width = 1.5, .dash = kOracleDash});
  svg.text({panel.right() - 4, height + 14}, "oracle-max: the largest demand of the coming window",
           {.size = kTickFont, .anchor = Anchor::end, .color = kFaintInk});
}

std::string letter(std::size_t index) { return phase_letter(static_cast<int>(index)); }

void draw_line(Svg& svg, const ParetoCurve& curve, const PhaseColor& color, const OverScale& x,
               const Scale& y) {
  std::string line;
  for (const ParetoPoint& mark : front_of(curve.marks)) {
    const Point at{x(mark.violation), y(100 * mark.cost)};
    line += fmt::format("{}{} {}", line.empty() ? 'M' : 'L', svg_number(at.x), svg_number(at.y));
    svg.circle(at, 2.5, color.fill);
  }
  svg.path(line, {.color = color.fill, .width = 2});
}

// Draws the shipped setting as a disc with the curve's letter; without a shipped setting, a dot.
void draw_shipped(Svg& svg, const ParetoCurve& curve, std::size_t index, const PhaseColor& color,
                  const OverScale& x, const Scale& y) {
  if (!curve.shipped) return;
  const ParetoPoint& mark = curve.marks[*curve.shipped];
  const Point at{x(mark.violation), y(100 * mark.cost)};
  svg.circle(at, 9.5, kPaper);
  svg.circle(at, 8.5, color.fill);
  svg.text({at.x, at.y + 4}, letter(index),
           {.size = 11, .anchor = Anchor::middle, .color = color.ink, .bold = true});
}

std::vector<LegendEntry> legend_of(const ParetoPlot& plot) {
  std::vector<LegendEntry> legend;
  for (std::size_t i = 0; i < plot.curves.size(); ++i)
    legend.push_back({letter(i) + " " + escape_name(plot.curves[i].name),
                      phase_color(i, plot.curves.size()).fill});
  if (!plot.controls.empty())
    legend.push_back({"reached without phases (all controls, all settings)", kReachedFill});
  return legend;
}

std::string description_of(const ParetoPlot& plot) {
  std::string text = escape_name(plot.subtitle) + ".";
  if (plot.oracle) text += fmt::format(" oracle-max allocates {:.3g} %.", 100 * *plot.oracle);
  for (const ParetoCurve& curve : plot.curves) {
    if (!curve.shipped) continue;
    const ParetoPoint& mark = curve.marks[*curve.shipped];
    text += fmt::format(" {}: {:.3g} % allocated, {:.3g} % of samples over.",
                        escape_name(curve.name), 100 * mark.cost, 100 * mark.violation);
  }
  return text;
}

}  // namespace

std::string draw_pareto(const ParetoPlot& plot) {
  CHECK_INVARIANT(plot.curves.size() <= kMostParetoCurves);
  const std::string title =
      fmt::format("{} of {}: allocated, and how often short", plot.resource,
                  escape_name(plot.source));
  Svg svg;
  svg.text({kLeft, 30}, fitted(title, 17, kPlotWidth), {.size = 17, .bold = true});
  svg.text({kLeft, 50}, fitted(escape_name(plot.subtitle), 12, kPlotWidth), {.color = kFaintInk});
  const double top = draw_legend(svg, {kLeft, 60}, kPlotWidth, legend_of(plot)) + 30;
  const Box panel{kLeft, top, kPlotWidth, kPanelHeight};
  const OverScale x(panel, most_over(plot));
  const Ticks ticks = value_ticks(most_allocated(plot), kTicks);
  const Scale y{0, ticks.top(), panel.bottom(), panel.y + kHeadroom};
  draw_reached(svg, panel, x, y, front_of(plot.controls));
  draw_value_axis(svg, panel, ticks, y, "allocated, % of the original limit");
  draw_over_axis(svg, panel, x);
  if (plot.oracle) draw_oracle(svg, panel, y, *plot.oracle);
  const std::size_t count = plot.curves.size();
  for (std::size_t i = count; i-- > 0;)
    draw_line(svg, plot.curves[i], phase_color(i, count), x, y);
  for (std::size_t i = count; i-- > 0;)
    draw_shipped(svg, plot.curves[i], i, phase_color(i, count), x, y);
  return svg.document(kWidth, panel.bottom() + 56, title, description_of(plot));
}

}  // namespace cgphase
