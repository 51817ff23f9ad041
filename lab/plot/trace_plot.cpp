#include "lab/plot/trace_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/output/time_text.h"
#include "lab/plot/palette.h"
#include "lab/plot/panel.h"
#include "model/phase.h"

namespace cgphase {
namespace {

constexpr double kWidth = 960, kLeft = 64, kRight = 24;
constexpr double kPlotWidth = kWidth - kLeft - kRight;
constexpr int kColumns = static_cast<int>(kPlotWidth / 2);
constexpr double kPanelHeight = 110, kLaneHeight = 16;
constexpr int kValueTicks = 5, kTimeTicks = 8;
// A limit above this multiple of the highest use is written as text. Drawn to scale it would press
// the use to the bottom.
constexpr double kMostHeadroom = 8;
constexpr std::string_view kLimitColor = "#6b6b6b", kLimitDash = "5 3";
constexpr double kNsPerSec = 1e9;
// Also distinguished by the dash; none is a colour of a phase.
constexpr std::array<Stroke, kMostPlottedPolicies> kPolicyStrokes = {
    {{"#b3005e", 2, ""}, {"#1a4f9c", 1.8, "7 3"}, {"#3d7a00", 1.8, "2 3"}}};

// Use and limit of one resource of one execution, in the unit of its axis.
struct Curves {
  const char* name;
  const char* unit;
  double per_unit;  // divides values of the envelopes
  const Envelope& use;
  const Envelope& limit;
  std::vector<const Envelope*> policies{};  // limits of the policies

  double most_use() const { return use.most() * per_unit; }
  double most_limit() const { return limit.most() * per_unit; }
  std::vector<LinePoint> line(const Envelope& envelope) const {
    std::vector<LinePoint> points = envelope.line();
    for (LinePoint& point : points) point.y *= per_unit;
    return points;
  }
  double most_wanted() const {
    double most = 0;
    for (const Envelope* policy : policies) most = std::max(most, policy->most() * per_unit);
    return most;
  }
};

Curves cpu_of(const PlottedExecution& execution) {
  Curves curves{"CPU", "cores", 1, execution.cores(), execution.core_limit()};
  for (const PlottedLimits& policy : execution.policies()) curves.policies.push_back(&policy.cores);
  return curves;
}

// Memory below half a GiB is drawn in MiB.
Curves memory_of(const PlottedExecution& execution) {
  const Envelope& use = execution.gib();
  const Envelope& limit = execution.gib_limit();
  const bool little = std::max(use.most(), limit.most()) < 0.5;
  Curves curves{"memory", little ? "MiB" : "GiB", little ? 1024.0 : 1.0, use, limit};
  for (const PlottedLimits& policy : execution.policies()) curves.policies.push_back(&policy.gib);
  return curves;
}

// Relative to one core, the daemon's usage ratio is in cores. Its gaps are our gaps.
FeatureExtractor cores_extractor() {
  return {FeatureSchema{{{Feature::cpu_usage_ratio, "cpu_usage_ratio"}}}, 0};
}

std::optional<double> as_gib(const std::optional<Bytes>& bytes) {
  if (!bytes) return std::nullopt;
  return static_cast<double>(bytes->value) / static_cast<double>(kGiB);
}

std::string note_on_limit(const Curves& curves, bool drawn) {
  if (!curves.use.any()) return "no readings";
  if (!curves.limit.any()) return "no limit";
  if (drawn) return "";
  return fmt::format("limit {:.4g} {}, beyond this scale", curves.most_limit(), curves.unit);
}

void draw_curves(Svg& svg, const Box& panel, const Curves& curves, const Scale& x) {
  const double use = curves.most_use(), limit = curves.most_limit();
  const bool limit_drawn = curves.limit.any() && (use <= 0 || limit <= kMostHeadroom * use);
  const double wanted = std::min(curves.most_wanted(), kMostHeadroom * use);
  const double most = limit_drawn ? std::max(use, limit) : std::max(use, wanted);
  const Ticks ticks = value_ticks(most, kValueTicks);
  const Scale y{0, ticks.top(), panel.bottom(), panel.y};
  draw_value_axis(svg, panel, ticks, y, fmt::format("{}, {}", curves.name, curves.unit));
  svg.text({panel.right(), panel.y - 7}, note_on_limit(curves, limit_drawn),
           {.size = kTickFont, .anchor = Anchor::end, .color = kFaintInk});
  if (limit_drawn)
    svg.path(step_path(curves.line(curves.limit), x, y),
             {.color = kLimitColor, .width = 1.5, .dash = kLimitDash});
  svg.path(line_path(curves.line(curves.use), x, y), {.width = 1.4});
  for (std::size_t i = 0; i < curves.policies.size(); ++i) {
    std::vector<LinePoint> line = curves.line(*curves.policies[i]);
    for (LinePoint& point : line) point.y = std::min(point.y, ticks.top());
    svg.path(step_path(line, x, y), kPolicyStrokes[i]);
  }
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

std::string when(const PlottedExecution& execution) {
  const std::size_t rows = execution.span().rows;
  const auto since_epoch = execution.span().start.time_since_epoch();
  return fmt::format("{}, {}, {} row{}",
                     time_text(static_cast<double>(since_epoch.count()) / kNsPerSec, true),
                     human_duration(execution.seconds()), rows, rows == 1 ? "" : "s");
}

std::string name_of(const PlottedExecution& execution) {
  const std::string id = execution.id().empty() ? "(no pod.id)" : escape_name(execution.id());
  if (execution.service().empty()) return id;
  return id + " of " + escape_name(execution.service());
}

// Returns the y below it.
double draw_execution(Svg& svg, double top, const PlottedExecution& execution,
                      std::size_t phase_count) {
  const std::string times = when(execution);
  const double room = kPlotWidth - text_pixels(times, 12) - 12;
  svg.text({kLeft, top + 14}, fitted(name_of(execution), 14, room), {.size = 14, .bold = true});
  svg.text({kLeft + kPlotWidth, top + 14}, times, {.anchor = Anchor::end, .color = kFaintInk});
  const Box cpu{kLeft, top + 44, kPlotWidth, kPanelHeight};
  const Box memory{kLeft, cpu.bottom() + 30, kPlotWidth, kPanelHeight};
  const Box lane{kLeft, memory.bottom() + 10, kPlotWidth, kLaneHeight};
  const Scale x{0, execution.seconds(), lane.x, lane.right()};
  draw_lane(svg, lane, x, execution.lane().runs(), phase_count, std::array{cpu, memory});
  svg.text({lane.x - 6, lane.y + 12}, "phase",
           {.size = kTickFont, .anchor = Anchor::end, .color = kFaintInk});
  draw_curves(svg, cpu, cpu_of(execution), x);
  draw_curves(svg, memory, memory_of(execution), x);
  draw_time_axis(svg, lane, x, execution.seconds());
  return lane.bottom() + 56;
}

std::string phase_text(const TracePlot& plot, int phase) {
  if (phase == kLaneUnknown) return "unknown phase";
  if (phase < 0) return plot.nothing_name;
  const std::string name = escape_name(plot.phase_names[static_cast<std::size_t>(phase)]);
  return phase_letter(phase) + (name.empty() ? "" : " " + name);
}

// First the lines, then the phases that occur.
std::vector<LegendEntry> legend_of(const TracePlot& plot) {
  std::vector<LegendEntry> legend = {
      {"CPU use, memory need", kInk, LegendEntry::Mark::line},
      {plot.policies.empty() ? "limit" : "original limit", kLimitColor, LegendEntry::Mark::line,
       kLimitDash}};
  for (std::size_t i = 0; i < plot.policies.size(); ++i)
    legend.push_back({"limit by " + escape_name(plot.policies[i]), kPolicyStrokes[i].color,
                      LegendEntry::Mark::line, kPolicyStrokes[i].dash});
  std::set<int> seen;
  for (const PlottedExecution& execution : plot.executions)
    for (const auto& [phase, seconds] : execution.lane().seconds()) seen.insert(phase);
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

// Description of one execution for screen readers.
std::string description_of(const TracePlot& plot, const PlottedExecution& execution) {
  const Curves cpu = cpu_of(execution), memory = memory_of(execution);
  std::string text = fmt::format(
      " {}: {}; at most {:.3g} {} of CPU and {:.3g} {} of memory.", name_of(execution),
      when(execution), cpu.most_use(), cpu.unit, memory.most_use(), memory.unit);
  const auto phase_seconds = execution.lane().seconds();
  double total = 0;
  for (const auto& [phase, seconds] : phase_seconds) total += seconds;
  for (const auto& [phase, seconds] : phase_seconds)
    text += fmt::format(" {}: {:.0f} % of the time.", phase_text(plot, phase),
                        100 * seconds / total);
  return text;
}

}  // namespace

void PlotSpan::add(const TraceRow& row) {
  if (rows++ == 0) {
    first = last = row.time;
    start = row.wall_time;
  }
  first = std::min(first, row.time);
  last = std::max(last, row.time);
}

PlottedExecution::PlottedExecution(const ExecutionHeader& execution, const PlotSpan& span)
    : id_(execution.id),
      service_(execution.service),
      span_(span),
      seconds_(seconds_between(span.first, span.last)),
      lane_(0, seconds_, kColumns),
      cores_(0, seconds_, kColumns),
      core_limit_(0, seconds_, kColumns),
      gib_(0, seconds_, kColumns),
      gib_limit_(0, seconds_, kColumns),
      extractor_(cores_extractor()) {
  CHECK_INVARIANT(span.rows > 0);
}

void PlottedExecution::add(const TraceRow& row, int phase) {
  static const Limits one_core{.cpu_max = CpuMax{Microseconds{100'000}, Microseconds{100'000}}};
  const double at = seconds_between(span_.first, row.time);
  const auto step = extractor_.add(row.sample, row.time, one_core, {});
  const auto cores = step.vector ? step.vector->values.front() : std::nullopt;
  const std::optional<Cores> limit = row.sample.limits.cpu_cores();
  lane_.add({at, phase, step.gap});
  cores_.add({at, cores, step.gap});
  core_limit_.add({at, limit ? std::optional(limit->value) : std::nullopt, step.gap});
  gib_.add({at, as_gib(memory_need(row.sample)), step.gap});
  gib_limit_.add({at, as_gib(row.sample.limits.memory_bytes()), step.gap});
}

void PlottedExecution::add_limits(std::size_t policy, MonotonicTime time,
                                  std::optional<double> cores, std::optional<double> bytes) {
  CHECK_INVARIANT(policy < kMostPlottedPolicies);
  while (policies_.size() <= policy)
    policies_.push_back({Envelope(0, seconds_, kColumns), Envelope(0, seconds_, kColumns)});
  const double at = seconds_between(span_.first, time);
  policies_[policy].cores.add({at, cores, false});
  if (bytes) *bytes /= static_cast<double>(kGiB);
  policies_[policy].gib.add({at, bytes, false});
}

int lane_phase(const Phase& phase) {
  if (phase.known()) return phase.index;
  return phase.state == PhaseState::unknown ? kLaneUnknown : kLaneNothing;
}

std::vector<std::string> phase_names_of(const Model& model) {
  std::vector<std::string> names;
  for (const PhaseSummary& phase : model.phases)
    names.push_back(phase.count > 0
                        ? fmt::format("(CPU {:.0f} %, memory {:.0f} %)",
                                      100 * phase.cpu_mean_ratio, 100 * phase.memory_mean_ratio)
                        : "");
  return names;
}

std::string draw_trace(const TracePlot& plot) {
  CHECK_INVARIANT(plot.executions.size() <= kMostPlottedExecutions);
  CHECK_INVARIANT(plot.policies.size() <= kMostPlottedPolicies);
  const std::string title = plot.kind + " " + escape_name(plot.source);
  std::string description = subtitle_of(plot) + ". CPU and memory over time, with their limits.";
  Svg svg;
  define_stripes(svg, plot.phase_names.size());
  svg.text({kLeft, 30}, fitted(title, 17, kPlotWidth), {.size = 17, .bold = true});
  svg.text({kLeft, 50}, fitted(subtitle_of(plot), 12, kPlotWidth), {.color = kFaintInk});
  double y = draw_legend(svg, {kLeft, 60}, kPlotWidth, legend_of(plot)) + 18;
  for (const PlottedExecution& execution : plot.executions) {
    y = draw_execution(svg, y, execution, plot.phase_names.size());
    description += description_of(plot, execution);
  }
  return svg.document(kWidth, y - 8, title, description);
}

}  // namespace cgphase
