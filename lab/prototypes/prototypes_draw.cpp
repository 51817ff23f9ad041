// Draws the tree and the chain. All text is made here from numbers; no name from outside is drawn,
// so nothing needs escaping.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lab/plot/palette.h"
#include "lab/prototypes/prototypes_render.h"

namespace cgphase {
namespace {

constexpr std::string_view kNoPhase = "#bbbbbb";

// The colours of phases, as in `cgphase plot`. From the tenth phase on only the label distinguishes
// phases; it is always drawn.
class Palette {
 public:
  explicit Palette(const std::vector<ChainState>& chain) {
    for (const ChainState& state : chain)
      if (state.state < kUnknownPhase) count_ = state.state + 1;
  }
  std::string_view color(int phase) const {
    const auto index = static_cast<std::size_t>(phase);
    if (phase >= kUnknownPhase || index >= kTolMuted.size()) return kNoPhase;
    return phase_color(index, static_cast<std::size_t>(count_)).fill;
  }

 private:
  int count_ = 0;  // both pictures of the same sequences use the same colours
};

// "523 executions, 37 end here, 5 rarer".
std::string node_text(const TreeNode& node) {
  std::string out = std::to_string(node.count);
  if (node.ends > 0) out += fmt::format(", {} end", node.ends);
  if (node.rest > 0) out += fmt::format(", {} rarer", node.rest);
  return out;
}

constexpr double kThinnestLine = 1, kWidthOfAll = 7;

double line_width(double share) { return kThinnestLine + kWidthOfAll * share; }

// ---- dot ----

constexpr std::string_view kDotStyle =
    "  rankdir=LR;\n"
    "  node [shape=box, style=rounded, fontname=\"sans-serif\", penwidth=2];\n"
    "  edge [fontname=\"sans-serif\", color=\"#777777\"];\n";

// Numbers nodes in the order of the walk.
void append_dot_branches(std::string& out, const PrototypesReport& report, const Palette& palette,
                         const TreeNode& node, std::size_t& last) {
  const std::size_t parent = last;
  for (const TreeNode& child : node.children) {
    const std::size_t name = ++last;
    out += fmt::format("  n{} [label=\"{}\\n{}\", color=\"{}\"];\n", name,
                       label_text(child.label, report.bins), node_text(child),
                       palette.color(child.label.phase));
    out += fmt::format("  n{} -> n{} [label=\"{}\", penwidth={:.2f}];\n", parent, name,
                       share_text(share_of(child.count, node.count)),
                       line_width(share_of(child.count, report.tree.count)));
    append_dot_branches(out, report, palette, child, last);
  }
}

std::string tree_dot(const PrototypesReport& report, const Palette& palette) {
  std::string out = fmt::format("digraph tree {{\n{}", kDotStyle);
  out += fmt::format("  n0 [label=\"executions\\n{}\"];\n", node_text(report.tree));
  std::size_t last = 0;
  append_dot_branches(out, report, palette, report.tree, last);
  return out + "}\n";
}

std::string chain_dot(const PrototypesReport& report, const Palette& palette) {
  std::string out = fmt::format("digraph chain {{\n{}", kDotStyle);
  out += "  \"start\" [shape=circle];\n  \"end\" [shape=doublecircle];\n";
  for (const ChainState& state : report.chain) {
    const std::string name = state_name(state.state);
    if (state.state != kStartState)
      out += fmt::format("  \"{}\" [label=\"{}\\nmean {:.1f}, median {}\", color=\"{}\"];\n", name,
                         name, state.dwell.mean, state.dwell.p50, palette.color(state.state));
    for (const ChainState::Transition& transition : state.transitions)
      if (transition.jump >= report.min_share)
        out += fmt::format("  \"{}\" -> \"{}\" [label=\"{}\", penwidth={:.2f}];\n", name,
                           state_name(transition.to), share_text(transition.jump),
                           line_width(transition.jump));
  }
  return out + "}\n";
}

// ---- SVG ----

std::string svg_document(int width, int height, const std::string& title,
                         const std::string& content) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<title>{2}</title>\n<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n"
      "<text x=\"12\" y=\"22\" font-size=\"14\" font-weight=\"bold\">{2}</text>\n{3}</svg>\n",
      width, height, title, content);
}

std::string lengths_text(const PrototypesReport& report) {
  if (!report.step_seconds) return "lengths in samples";
  return fmt::format("lengths in steps of {} s", *report.step_seconds);
}

std::string legend_line(int y, const std::string& text) {
  return fmt::format("<text x=\"12\" y=\"{}\" fill=\"#555555\">{}</text>\n", y, text);
}

// Columns are depths. A leaf has its own row; a branch is in the middle of its children.
class TreeSvg {
 public:
  TreeSvg(const PrototypesReport& report, const Palette& palette)
      : report_(report), palette_(palette) {}

  std::string draw() {
    append(report_.tree, 0, report_.tree.count);
    const int width = kLeft + deepest_ * kPitch + kBoxWidth + kLeft;
    const int height = kTop + leaves_ * kRow + kLeft;
    const std::string title = "Courses of " + std::to_string(report_.tree.count) + " executions";
    const std::string legend =
        legend_line(42, "phase(length) and its probability after the path before it; " +
                            lengths_text(report_)) +
        legend_line(58, "below: executions, how many end here, how many go on into rarer branches");
    return svg_document(std::max(width, kMinWidth), height, title, legend + edges_ + boxes_);
  }

 private:
  static constexpr int kLeft = 12, kTop = 74, kRow = 44, kBoxHeight = 36, kBoxWidth = 190,
                       kPitch = 230, kMinWidth = 700, kStripe = 6;

  // Returns the y of the middle of the node, in pixels from the top.
  int append(const TreeNode& node, int depth, std::size_t parent_count) {
    deepest_ = std::max(deepest_, depth);
    std::vector<int> middles;
    for (const TreeNode& child : node.children)
      middles.push_back(append(child, depth + 1, node.count));
    const int middle = middles.empty() ? kTop + leaves_++ * kRow + kBoxHeight / 2
                                       : (middles.front() + middles.back()) / 2;
    for (std::size_t i = 0; i < middles.size(); ++i)
      append_edge(share_of(node.children[i].count, report_.tree.count), depth, middle, middles[i]);
    append_box(node, depth, middle, parent_count);
    return middle;
  }

  void append_edge(double share, int depth, int from, int to) {
    const int left = kLeft + depth * kPitch + kBoxWidth, right = kLeft + (depth + 1) * kPitch;
    const int bend = (left + right) / 2;
    edges_ += fmt::format(
        "<path d=\"M{0} {1}C{2} {1} {2} {3} {4} {3}\" fill=\"none\" stroke=\"#999999\" "
        "stroke-width=\"{5:.2f}\"/>\n", left, from, bend, to, right, line_width(share));
  }

  void append_box(const TreeNode& node, int depth, int middle, std::size_t parent_count) {
    const int left = kLeft + depth * kPitch, top = middle - kBoxHeight / 2;
    const bool root = depth == 0;
    boxes_ += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#f6f6f6\" stroke=\"#777777\"/>\n"
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", left, top, kBoxWidth,
        kBoxHeight, left, top, kStripe, kBoxHeight,
        root ? kNoPhase : palette_.color(node.label.phase));
    boxes_ += fmt::format(
        "<text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>\n", left + kStripe + 6, middle - 4,
        root ? "executions" : label_text(node.label, report_.bins));
    if (!root)
      boxes_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n",
                            left + kBoxWidth - 6, middle - 4,
                            share_text(share_of(node.count, parent_count)));
    boxes_ += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"11\">{}</text>\n",
                          left + kStripe + 6, middle + 12, node_text(node));
  }

  const PrototypesReport& report_;
  const Palette& palette_;
  int leaves_ = 0, deepest_ = 0;
  std::string edges_, boxes_;
};

// One row per state, one column per state that can follow, then the dwell times.
class ChainSvg {
 public:
  ChainSvg(const PrototypesReport& report, const Palette& palette)
      : report_(report), palette_(palette) {
    for (const ChainState& state : report.chain)
      if (state.state != kStartState) columns_.push_back(state.state);
    columns_.push_back(kEndState);
  }

  std::string draw() {
    append_titles();
    for (const ChainState& state : report_.chain) append_row(state);
    const auto states = static_cast<int>(columns_.size());
    const int width = dwell_left() + static_cast<int>(kDwellTitles.size()) * kDwellCell + kLeft;
    return svg_document(std::max(width, kMinWidth), kTop + (states + 1) * kCell + kLeft,
                        "Chain of phases of " + std::to_string(report_.tree.count) +
                            " executions", content_);
  }

 private:
  static constexpr int kLeft = 12, kTop = 64, kCell = 34, kName = 84, kWide = 76,
                       kDwellCell = 62, kMinWidth = 700, kStripe = 6;
  static constexpr std::array<std::string_view, 6> kDwellTitles = {"runs", "mean", "p10",
                                                                   "p50", "p90", "max"};

  int dwell_left() const { return kLeft + kName + static_cast<int>(columns_.size()) * kWide; }

  // Draws text that ends at `x` or is centred there.
  void append_text(int x, int y, std::string_view anchor, std::string_view text,
                   std::string_view fill = "#000000") {
    content_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", x,
                            y, anchor, fill, text);
  }

  void append_name(int state, int x, int y) {
    content_ += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"20\" fill=\"{}\"/>\n"
        "<text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>\n",
        x, y - 14, kStripe, palette_.color(state), x + kStripe + 6, y, state_name(state));
  }

  void append_titles() {
    content_ += legend_line(42, "row: phase that is left; column: phase that follows; right: how "
                                "long the phase was, " + lengths_text(report_));
    for (std::size_t i = 0; i < columns_.size(); ++i)
      append_name(columns_[i], kLeft + kName + static_cast<int>(i) * kWide, kTop + 22);
    for (std::size_t i = 0; i < kDwellTitles.size(); ++i)
      append_text(dwell_left() + (static_cast<int>(i) + 1) * kDwellCell, kTop + 22, "end",
                  kDwellTitles[i]);
  }

  void append_row(const ChainState& state) {
    const int top = kTop + ++rows_ * kCell, base = top + 22;
    append_name(state.state, kLeft, base);
    for (const ChainState::Transition& transition : state.transitions) {
      const auto column = std::ranges::find(columns_, transition.to) - columns_.begin();
      const int left = kLeft + kName + static_cast<int>(column) * kWide;
      content_ += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#0072b2\" "
          "fill-opacity=\"{:.3f}\"/>\n", left, top, kWide - 2, kCell - 2, transition.jump);
      append_text(left + kWide / 2, base, "middle", share_text(transition.jump),
                  transition.jump > kDark ? "#ffffff" : "#000000");
    }
    append_dwell(state, base);
  }

  void append_dwell(const ChainState& state, int base) {
    std::vector<std::string> cells = {std::to_string(state.visits)};
    if (state.state != kStartState) {
      cells.push_back(fmt::format("{:.1f}", state.dwell.mean));
      for (const auto length :
           {state.dwell.p10, state.dwell.p50, state.dwell.p90, state.dwell.max})
        cells.push_back(std::to_string(length));
    }
    for (std::size_t i = 0; i < cells.size(); ++i)
      append_text(dwell_left() + (static_cast<int>(i) + 1) * kDwellCell, base, "end", cells[i]);
  }

  static constexpr double kDark = 0.9;  // darker shades need white text

  const PrototypesReport& report_;
  const Palette& palette_;
  std::vector<int> columns_;
  int rows_ = 0;
  std::string content_;
};

}  // namespace

std::string prototypes_dot(const PrototypesReport& report, Drawing drawing) {
  const Palette palette(report.chain);
  return drawing == Drawing::tree ? tree_dot(report, palette) : chain_dot(report, palette);
}

std::string prototypes_svg(const PrototypesReport& report, Drawing drawing) {
  const Palette palette(report.chain);
  return drawing == Drawing::tree ? TreeSvg(report, palette).draw()
                                  : ChainSvg(report, palette).draw();
}

}  // namespace cgphase
