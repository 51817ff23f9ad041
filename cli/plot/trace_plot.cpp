#include "cli/plot/trace_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/plot/palette.h"
#include "model/phase.h"
#include "cli/plot/panel.h"
#include "cli/plot/phase_lane.h"
#include "cli/time_text.h"
#include "model/feature_extractor.h"

namespace cgphase {
namespace {

constexpr double kWidth = 960, kLeft = 64, kRight = 24;
constexpr double kPlotWidth = kWidth - kLeft - kRight;
constexpr int kColumns = static_cast<int>(kPlotWidth / 2);
constexpr double kPanelHeight = 110, kLaneHeight = 16;
constexpr int kValueTicks = 5, kTimeTicks = 8;
// A limit farther above all use than this is told, not drawn: the use would be a line at the
// bottom.
constexpr double kMostHeadroom = 8;
constexpr std::string_view kLimitColor = "#6b6b6b", kLimitDash = "5 3";
constexpr double kNsPerSec = 1e9;

// Use and limit of one resource of one execution, in the unit of its axis.
struct Curves {
  std::string name, unit;
  std::vector<Reading> use, limit;
};

struct Series {
  std::vector<LaneRow> rows;
  Curves cpu{"CPU", "cores", {}, {}}, memory{"memory", "GiB", {}, {}};
  double seconds = 0;  // from the first to the last
};

double most(const std::vector<Reading>& readings) {
  double top = 0;
  for (const Reading& reading : readings) top = std::max(top, reading.y.value_or(0));
  return top;
}

bool any(const std::vector<Reading>& readings) {
  return std::ranges::any_of(readings, [](const Reading& one) { return one.y.has_value(); });
}

// Measured against one core, the daemon's usage ratio is cores; its gaps are ours.
FeatureExtractor cores_extractor() {
  return {FeatureSchema{{{Feature::cpu_usage_ratio, "cpu_usage_ratio"}}}, 0};
}

std::optional<double> as_gib(const std::optional<Bytes>& bytes) {
  if (!bytes) return std::nullopt;
  return static_cast<double>(bytes->value) / static_cast<double>(kGiB);
}

// Memory below half a GiB is told in MiB.
void choose_unit(Curves& memory) {
  if (std::max(most(memory.use), most(memory.limit)) >= 0.5) return;
  memory.unit = "MiB";
  for (std::vector<Reading>* readings : {&memory.use, &memory.limit})
    for (Reading& reading : *readings)
      if (reading.y) *reading.y *= 1024;
}

Series series_of(const PlottedExecution& plotted) {
  const std::vector<TraceRow>& rows = plotted.execution->rows;
  const auto time = [](const TraceRow& row) { return row.time; };
  const auto [first, last] = std::ranges::minmax(rows, {}, time);
  const Limits one_core{.cpu_max = CpuMax{Microseconds{100'000}, Microseconds{100'000}}};
  FeatureExtractor extractor = cores_extractor();
  Series series;
  const auto seconds_since_first = [&, begin = first.time](const TraceRow& row) {
    return static_cast<double>((row.time - begin).count()) / kNsPerSec;
  };
  series.seconds = seconds_since_first(last);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Sample& sample = rows[i].sample;
    const double at = seconds_since_first(rows[i]);
    const auto step = extractor.add(sample, rows[i].time, one_core, {});
    const auto cores = step.vector ? step.vector->values.front() : std::nullopt;
    const std::optional<Cores> limit = sample.limits.cpu_cores();
    series.rows.push_back({at, plotted.phases[i], step.gap});
    series.cpu.use.push_back({at, cores, step.gap});
    series.cpu.limit.push_back({at, limit ? std::optional(limit->value) : std::nullopt, step.gap});
    series.memory.use.push_back({at, as_gib(memory_need(sample)), step.gap});
    series.memory.limit.push_back({at, as_gib(sample.limits.memory_bytes()), step.gap});
  }
  choose_unit(series.memory);
  return series;
}

std::string note_on_limit(const Curves& curves, bool drawn) {
  if (!any(curves.use)) return "no readings";
  if (!any(curves.limit)) return "no limit";
  if (drawn) return "";
  return fmt::format("limit {:.4g} {}, beyond this scale", most(curves.limit), curves.unit);
}

void draw_curves(Svg& svg, const Box& panel, const Curves& curves, const Scale& x,
                   double seconds) {
  const double use = most(curves.use), limit = most(curves.limit);
  const bool limit_drawn = any(curves.limit) && (use <= 0 || limit <= kMostHeadroom * use);
  const Ticks ticks = value_ticks(limit_drawn ? std::max(use, limit) : use, kValueTicks);
  const Scale y{0, ticks.top(), panel.bottom(), panel.y};
  draw_value_axis(svg, panel, ticks, y, curves.name + ", " + curves.unit);
  svg.text({panel.right(), panel.y - 7}, note_on_limit(curves, limit_drawn),
           {.size = kTickFont, .anchor = Anchor::end, .color = kFaintInk});
  if (limit_drawn)
    svg.path(step_path(envelope(curves.limit, 0, seconds, kColumns), x, y),
             {.color = kLimitColor, .width = 1.5, .dash = kLimitDash});
  svg.path(line_path(envelope(curves.use, 0, seconds, kColumns), x, y), {.width = 1.4});
}

void draw_time_axis(Svg& svg, const Box& lane, const Scale& x, double seconds) {
  const TimeTicks time = time_ticks(seconds, kTimeTicks);
  const double y = lane.bottom();
  for (std::size_t i = 0; i < time.ticks.values.size(); ++i) {
    const double at = x(time.ticks.values[i] * time.unit_seconds);
    svg.line({at, y}, {at, y + 5}, {.color = kFaintInk});
    svg.text({at, y + 17}, time.ticks.label(i),
             {.size = kTickFont, .anchor = Anchor::middle, .color = kFaintInk});
  }
  svg.text({lane.x + lane.width / 2, y + 33}, fmt::format("time since the start, {}", time.unit),
           {.anchor = Anchor::middle});
}

double start_seconds(const Execution& execution) {
  return static_cast<double>(execution.rows.front().wall_time.time_since_epoch().count()) /
         kNsPerSec;
}

std::string when(const Execution& execution, double seconds) {
  const std::size_t rows = execution.rows.size();
  return fmt::format("{}, {}, {} row{}", time_text(start_seconds(execution), true),
                     human_duration(seconds), rows, rows == 1 ? "" : "s");
}

std::string name_of(const Execution& execution) {
  const std::string id = execution.id.empty() ? "(no pod.id)" : escape_name(execution.id);
  if (execution.service.empty()) return id;
  return id + " of " + escape_name(execution.service);
}

// Returns the y below it.
double draw_execution(Svg& svg, double top, const Execution& execution, const Series& series,
                      std::size_t phase_count) {
  const std::string times = when(execution, series.seconds);
  const double room = kPlotWidth - text_pixels(times, 12) - 12;
  svg.text({kLeft, top + 14}, fitted(name_of(execution), 14, room), {.size = 14, .bold = true});
  svg.text({kLeft + kPlotWidth, top + 14}, times, {.anchor = Anchor::end, .color = kFaintInk});
  const Box cpu{kLeft, top + 44, kPlotWidth, kPanelHeight};
  const Box memory{kLeft, cpu.bottom() + 30, kPlotWidth, kPanelHeight};
  const Box lane{kLeft, memory.bottom() + 10, kPlotWidth, kLaneHeight};
  const Scale x{0, series.seconds, lane.x, lane.right()};
  const auto runs = thinned(lane_runs(series.rows), 0, series.seconds, kColumns);
  draw_lane(svg, lane, x, runs, phase_count, std::array{cpu, memory});
  svg.text({lane.x - 6, lane.y + 12}, "phase",
           {.size = kTickFont, .anchor = Anchor::end, .color = kFaintInk});
  draw_curves(svg, cpu, series.cpu, x, series.seconds);
  draw_curves(svg, memory, series.memory, x, series.seconds);
  draw_time_axis(svg, lane, x, series.seconds);
  return lane.bottom() + 56;
}

std::string phase_text(const TracePlot& plot, int phase) {
  if (phase == kLaneUnknown) return plot.unknown_name;
  if (phase < 0) return plot.nothing_name;
  const std::string name = escape_name(plot.phase_names[static_cast<std::size_t>(phase)]);
  return phase_letter(phase) + (name.empty() ? "" : " " + name);
}

// The lines, then the phases that occur.
std::vector<LegendEntry> legend_of(const TracePlot& plot, const std::vector<Series>& all) {
  std::vector<LegendEntry> legend = {
      {"CPU use, memory need", kInk, LegendEntry::Mark::line},
      {"limit", kLimitColor, LegendEntry::Mark::line, kLimitDash}};
  std::set<int> seen;
  for (const Series& series : all)
    for (const LaneRun& run : lane_runs(series.rows)) seen.insert(run.phase);
  const auto add = [&](int phase) {
    const LaneFill fill = lane_fill(phase, plot.phase_names.size());
    legend.push_back({phase_text(plot, phase), fill.fill, LegendEntry::Mark::swatch, "",
                      fill.overlay});
  };
  for (const int phase : seen)
    if (phase >= 0) add(phase);
  for (const int phase : {kLaneUnknown, kLaneNothing})
    if (seen.contains(phase)) add(phase);
  return legend;
}

std::string subtitle_of(const TracePlot& plot) {
  const std::size_t drawn = plot.executions.size();
  std::string text = fmt::format("{} execution{}", drawn, drawn == 1 ? "" : "s");
  if (drawn < plot.total)
    text += fmt::format(" of {}; --id draws one of the others", plot.total);
  return text + "; " + escape_name(plot.phase_source);
}

// What a reader who does not see the picture is told of one execution.
std::string told(const TracePlot& plot, const Execution& execution, const Series& series) {
  std::string text = fmt::format(
      " {}: {}; at most {:.3g} {} of CPU and {:.3g} {} of memory.", name_of(execution),
      when(execution, series.seconds), most(series.cpu.use), series.cpu.unit,
      most(series.memory.use), series.memory.unit);
  const auto held = lane_seconds(lane_runs(series.rows));
  double total = 0;
  for (const auto& [phase, seconds] : held) total += seconds;
  for (const auto& [phase, seconds] : held)
    text += fmt::format(" {}: {:.0f} % of the time.", phase_text(plot, phase),
                        100 * seconds / total);
  return text;
}

}  // namespace

std::string draw_trace(const TracePlot& plot) {
  CHECK_INVARIANT(plot.executions.size() <= kMostPlottedExecutions);
  std::vector<Series> all;
  for (const PlottedExecution& plotted : plot.executions) all.push_back(series_of(plotted));
  const std::string title = plot.kind + " " + escape_name(plot.source);
  std::string description = subtitle_of(plot) + ". CPU and memory over time, with their limits.";
  Svg svg;
  define_stripes(svg, plot.phase_names.size());
  svg.text({kLeft, 30}, fitted(title, 17, kPlotWidth), {.size = 17, .bold = true});
  svg.text({kLeft, 50}, fitted(subtitle_of(plot), 12, kPlotWidth), {.color = kFaintInk});
  double y = draw_legend(svg, {kLeft, 60}, kPlotWidth, legend_of(plot, all)) + 18;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Execution& execution = *plot.executions[i].execution;
    y = draw_execution(svg, y, execution, all[i], plot.phase_names.size());
    description += told(plot, execution, all[i]);
  }
  return svg.document(kWidth, y - 8, title, description);
}

}  // namespace cgphase
