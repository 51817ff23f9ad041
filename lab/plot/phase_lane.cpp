#include "lab/plot/phase_lane.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/check.h"
#include "lab/plot/palette.h"
#include "model/phase.h"

namespace cgphase {
namespace {

constexpr std::string_view kNothingFill = "#d9d9d9";
constexpr double kLetterFont = 11, kLetterMargin = 5;
constexpr double kBandOpacity = 0.14;
constexpr double kBoundary = 0.5;  // half of the gap between two runs, in pixels

struct Stripes {
  std::string_view id, fill;
  std::string_view paper, ink;
  int degrees;
};
constexpr Stripes kUnknownStripes = {"plot-unknown", "url(#plot-unknown)", kPaper, "#8c8c8c", 45};
// Stripes over repeated colours. A model has at most 32 phases, so colours repeat three times.
constexpr std::array<Stripes, 3> kAgain = {
    {{"plot-again-1", "url(#plot-again-1)", "none", kPaper, 45},
     {"plot-again-2", "url(#plot-again-2)", "none", kPaper, 135},
     {"plot-again-3", "url(#plot-again-3)", "none", kPaper, 90}}};

void define(Svg& svg, const Stripes& stripes) {
  svg.stripes(stripes.id, stripes.paper, stripes.ink, stripes.degrees);
}

// Position of a run in pixels; width 0 if it is too short to be seen.
Box place(const LaneRun& run, const Scale& x, const Box& lane) {
  const double from = x(run.from), to = x(run.to);
  const double free = to - from > 4 * kBoundary ? kBoundary : 0;
  return {from + free, lane.y, to - from - 2 * free, lane.height};
}

// Draws all runs of one phase as one shape.
std::string shape_of(int phase, std::span<const LaneRun> runs, const Scale& x, const Box& lane) {
  std::string path;
  for (const LaneRun& run : runs) {
    if (run.phase != phase) continue;
    if (!path.empty()) path += '\n';
    path += box_path(place(run, x, lane));
  }
  return path;
}

void draw_letters(Svg& svg, const Box& lane, const Scale& x, std::span<const LaneRun> runs,
                  std::size_t count) {
  for (const LaneRun& run : runs) {
    const Box box = place(run, x, lane);
    if (run.phase < 0) continue;
    const auto index = static_cast<std::size_t>(run.phase);
    const std::string letter = phase_letter(run.phase);
    const double middle = box.x + box.width / 2;
    const double needed = text_pixels(letter, kLetterFont) + kLetterMargin;
    if (box.width < needed) continue;
    // A letter on stripes is not readable.
    const LaneFill fill = lane_fill(run.phase, count);
    if (!fill.overlay.empty())
      svg.rectangle({middle - needed / 2, box.y, needed, box.height}, fill.fill);
    svg.text({middle, box.y + box.height / 2 + 4}, letter,
             {.size = kLetterFont,
              .anchor = Anchor::middle,
              .color = phase_color(index, count).ink,
              .bold = true});
  }
}

// Left border of a column.
double border(std::size_t column, double from, double width) {
  return from + width * static_cast<double>(column);
}

// Divides a run among the columns of [from, to] that it covers.
void add_to_columns(const LaneRun& run, double from, double to,
                    std::vector<std::map<int, double>>& seconds) {
  const auto columns = static_cast<int>(seconds.size());
  const double width = (to - from) / columns;
  const auto first = static_cast<int>(std::clamp((run.from - from) / width, 0.0, columns - 1.0));
  for (auto column = static_cast<std::size_t>(first);
       column < seconds.size() && border(column, from, width) < run.to; ++column) {
    const double within = std::min(run.to, border(column + 1, from, width)) -
                          std::max(run.from, border(column, from, width));
    if (within > 0) seconds[column][run.phase] += within;
  }
}

std::vector<LaneRun> longest_of(const std::vector<std::map<int, double>>& seconds, double from,
                                double to) {
  const double width = (to - from) / static_cast<double>(seconds.size());
  std::vector<LaneRun> out;
  for (std::size_t column = 0; column < seconds.size(); ++column) {
    const auto& shares = seconds[column];
    if (shares.empty()) continue;
    const auto longest = std::ranges::max_element(
        shares, [](const auto& a, const auto& b) { return a.second < b.second; });
    const LaneRun run{border(column, from, width), border(column + 1, from, width), longest->first};
    const bool goes_on = !out.empty() && out.back().phase == run.phase && out.back().to == run.from;
    if (goes_on) out.back().to = run.to;
    else out.push_back(run);
  }
  return out;
}

}  // namespace

Lane::Lane(double from, double to, int columns)
    : from_(from), to_(to), columns_(static_cast<std::size_t>(columns)), by_column_(columns_) {
  CHECK_INVARIANT(columns >= 1);
}

void Lane::add(const LaneRow& row) {
  if (last_ && !row.gap && row.seconds > *last_) {
    const bool goes_on = open_ && open_->phase == row.phase && open_->to == *last_;
    if (!goes_on) {
      end_run();
      open_ = {*last_, row.seconds, row.phase};
    }
    open_->to = row.seconds;
  }
  last_ = row.seconds;
}

void Lane::end_run() {
  if (!open_) return;
  seconds_[open_->phase] += open_->to - open_->from;
  if (runs_.size() <= columns_) runs_.push_back(*open_);
  if (to_ > from_) add_to_columns(*open_, from_, to_, by_column_);
  open_.reset();
}

std::vector<LaneRun> Lane::runs() const {
  Lane ended = *this;
  ended.end_run();
  if (ended.runs_.size() <= columns_) return ended.runs_;
  return longest_of(ended.by_column_, from_, to_);
}

std::map<int, double> Lane::seconds() const {
  Lane ended = *this;
  ended.end_run();
  return ended.seconds_;
}

LaneFill lane_fill(int phase, std::size_t count) {
  if (phase == kLaneUnknown) return {kUnknownStripes.fill, ""};
  if (phase < 0) return {kNothingFill, ""};
  const auto index = static_cast<std::size_t>(phase);
  const std::size_t round = std::min(phase_round(index), kAgain.size());
  const bool again = count > kOkabeIto.size() && round > 0;
  return {phase_color(index, count).fill, again ? kAgain[round - 1].fill : ""};
}

void define_stripes(Svg& svg, std::size_t count) {
  define(svg, kUnknownStripes);
  for (std::size_t round = 1; round <= kAgain.size(); ++round)
    if (count > round * kTolMuted.size()) define(svg, kAgain[round - 1]);
}

void draw_lane(Svg& svg, const Box& lane, const Scale& x, std::span<const LaneRun> runs,
               std::size_t count, std::span<const Box> behind) {
  std::set<int> phases;
  for (const LaneRun& run : runs) phases.insert(run.phase);
  for (const int phase : phases) {
    const LaneFill fill = lane_fill(phase, count);
    const std::string shape = shape_of(phase, runs, x, lane);
    svg.shape(shape, fill.fill);
    if (!fill.overlay.empty()) svg.shape(shape, fill.overlay);
    if (phase < 0) continue;
    for (const Box& panel : behind)
      svg.shape(shape_of(phase, runs, x, panel), fill.fill, kBandOpacity);
  }
  draw_letters(svg, lane, x, runs, count);
}

}  // namespace cgphase
