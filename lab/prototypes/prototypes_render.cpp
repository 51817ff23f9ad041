#include "lab/prototypes/prototypes_render.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "cli/output/table.h"
#include "model/phase.h"

namespace cgphase {

using nlohmann::json;

std::string state_name(int state) {
  switch (state) {
    case kUnknownPhase: return "unknown";
    case kStartState: return "start";
    case kEndState: return "end";
    default: return phase_letter(state);
  }
}

std::string label_text(const BinnedPhase& label, const LengthBins& bins) {
  const std::string phase = label.phase == kUnknownPhase ? "?" : phase_letter(label.phase);
  if (bins.count() == 1) return phase;
  const std::uint64_t from = bins.from(label.bin);
  const std::optional<std::uint64_t> to = bins.to(label.bin);
  if (!to) return fmt::format("{}({}+)", phase, from);
  if (*to == from) return fmt::format("{}({})", phase, from);
  return fmt::format("{}({}-{})", phase, from, *to);
}

std::string share_text(double share) { return fmt::format("{:.1f} %", share * 100); }

double share_of(std::size_t count, std::size_t total) {
  return total == 0 ? 0 : static_cast<double>(count) / static_cast<double>(total);
}

// ---- text ----

namespace {

constexpr std::size_t kMaxShownPhases = 16;  // phases of a prototype in one line of text

using Align = Table::Align;

void append_table(std::string& out, const Table& table, bool legend) {
  out += table.text(TextStyle{.legend = legend});
}

std::string sequence_text(const Signature& signature, const LengthBins& bins) {
  std::string out;
  for (std::size_t i = 0; i < std::min(signature.size(), kMaxShownPhases); ++i)
    out += (i > 0 ? " " : "") + label_text(signature[i], bins);
  if (signature.size() > kMaxShownPhases)
    out += fmt::format(" and {} more", signature.size() - kMaxShownPhases);
  return out;
}

std::string heading(const PrototypesReport& report) {
  std::string out = fmt::format("{} executions, lengths in ", report.prototypes.executions);
  out += report.step_seconds ? fmt::format("steps of {} s", *report.step_seconds) : "samples";
  if (report.without_phase_count > 0)
    out += fmt::format("; {} without any phase", report.without_phase_count);
  return out + "\n";
}

void append_prototypes(std::string& out, const PrototypesReport& report, bool legend) {
  const PrototypeSet& set = report.prototypes;
  out += fmt::format("\nprototypes: {} of {} sequences cover {} executions ({})\n",
                     set.prototypes.size(), set.distinct, set.covered,
                     share_text(share_of(set.covered, set.executions)));
  Table table({{"executions", Align::right}, {"share", Align::right}, {"together", Align::right},
               {"sequence"}, {"example"}});
  std::size_t together = 0;
  for (const Prototype& prototype : set.prototypes) {
    together += prototype.count;
    table.add({{std::to_string(prototype.count)},
               {share_text(share_of(prototype.count, set.executions))},
               {share_text(share_of(together, set.executions))},
               {sequence_text(prototype.signature, report.bins)},
               {escape_name(prototype.example)}});
  }
  append_table(out, table, legend);
}

std::string count_or_blank(std::size_t count) { return count > 0 ? std::to_string(count) : ""; }

void add_branches(Table& table, const PrototypesReport& report, const TreeNode& node,
                  std::size_t depth) {
  for (const TreeNode& child : node.children) {
    table.add({{std::string(2 * depth, ' ') + label_text(child.label, report.bins)},
               {std::to_string(child.count)},
               {share_text(share_of(child.count, node.count))},
               {share_text(share_of(child.count, report.tree.count))},
               {fmt::format("{:.1f}", share_of(child.steps, child.count))},
               {count_or_blank(child.ends)},
               {count_or_blank(child.rest)}});
    add_branches(table, report, child, depth + 1);
  }
}

void append_tree(std::string& out, const PrototypesReport& report, bool legend) {
  out += fmt::format("\ntree: branches with at least {} of the executions\n",
                     share_text(report.min_share));
  Table table({{"phase"}, {"executions", Align::right}, {"given path", Align::right},
               {"of all", Align::right}, {"mean length", Align::right},
               {"end here", Align::right}, {"rarer", Align::right}});
  const TreeNode& root = report.tree;
  table.add({{"start"}, {std::to_string(root.count)}, {}, {}, {}, {count_or_blank(root.ends)},
             {count_or_blank(root.rest)}});
  add_branches(table, report, root, 1);
  append_table(out, table, legend);
}

std::vector<Table::Cell> dwell_cells(const Dwell& dwell) {
  std::vector<Table::Cell> cells = {{fmt::format("{:.1f}", dwell.mean)}};
  for (const std::uint64_t length : {dwell.min, dwell.p10, dwell.p50, dwell.p90, dwell.max})
    cells.push_back({std::to_string(length)});
  return cells;
}

void add_dwell_columns(std::vector<Table::Column>& columns) {
  for (const char* title : {"mean", "min", "p10", "p50", "p90", "max"})
    columns.push_back({title, Align::right});
}

void append_chain(std::string& out, const PrototypesReport& report, bool legend) {
  out += "\nchain: how often and how long each phase was\n";
  std::vector<Table::Column> columns = {
      {"phase"}, {"runs", Align::right}, {"stays", Align::right}};
  add_dwell_columns(columns);
  Table states(std::move(columns));
  columns = {{"from"}, {"to"}, {"count", Align::right}, {"jump", Align::right},
             {"per step", Align::right}};
  add_dwell_columns(columns);
  Table transitions(std::move(columns));
  for (const ChainState& state : report.chain) {
    const bool start = state.state == kStartState;
    std::vector<Table::Cell> row = {{state_name(state.state)}, {std::to_string(state.visits)},
                                    {share_text(state.stay)}};
    const std::vector<Table::Cell> dwell = dwell_cells(state.dwell);
    row.insert(row.end(), dwell.begin(), dwell.end());
    if (!start) states.add(std::move(row));
    for (const ChainState::Transition& transition : state.transitions) {
      std::vector<Table::Cell> line = {{state_name(state.state)}, {state_name(transition.to)},
                                       {std::to_string(transition.count)},
                                       {share_text(transition.jump)},
                                       {share_text(transition.leave)}};
      const std::vector<Table::Cell> before =
          start ? std::vector<Table::Cell>(dwell.size()) : dwell_cells(transition.dwell);
      line.insert(line.end(), before.begin(), before.end());
      transitions.add(std::move(line));
    }
  }
  append_table(out, states, legend);
  out += "\nto which phase each is left, and after how long\n";
  append_table(out, transitions, legend);
}

}  // namespace

std::string prototypes_text(const PrototypesReport& report, bool legend) {
  std::string out = heading(report);
  append_prototypes(out, report, legend);
  append_tree(out, report, legend);
  append_chain(out, report, legend);
  return out;
}

// ---- JSON ----

namespace {

// Like state_name(), but phases are numbers.
std::string state_key(int state) {
  return state < kUnknownPhase ? std::to_string(state) : state_name(state);
}

json label_json(const BinnedPhase& label, const LengthBins& bins) {
  const std::optional<std::uint64_t> to = bins.to(label.bin);
  return {{"phase", label.phase == kUnknownPhase ? json() : json(label.phase)},
          {"from", bins.from(label.bin)},
          {"to", to ? json(*to) : json()}};
}

json prototypes_part(const PrototypesReport& report) {
  const PrototypeSet& set = report.prototypes;
  json list = json::array();
  std::size_t together = 0;
  for (const Prototype& prototype : set.prototypes) {
    json sequence = json::array();
    for (const BinnedPhase& label : prototype.signature)
      sequence.push_back(label_json(label, report.bins));
    together += prototype.count;
    list.push_back({{"count", prototype.count},
                    {"share", share_of(prototype.count, set.executions)},
                    {"cumulative_share", share_of(together, set.executions)},
                    {"example", escape_name(prototype.example)},
                    {"sequence", std::move(sequence)}});
  }
  return list;
}

json branches_json(const PrototypesReport& report, const TreeNode& node) {
  json children = json::array();
  for (const TreeNode& child : node.children) {
    json object = label_json(child.label, report.bins);
    object["count"] = child.count;
    object["probability"] = share_of(child.count, node.count);
    object["share"] = share_of(child.count, report.tree.count);
    object["mean_length"] = share_of(child.steps, child.count);
    object["ends"] = child.ends;
    object["rest"] = child.rest;
    object["children"] = branches_json(report, child);
    children.push_back(std::move(object));
  }
  return children;
}

json dwell_json(const Dwell& dwell) {
  return {{"mean", dwell.mean}, {"min", dwell.min}, {"p10", dwell.p10},
          {"p50", dwell.p50},   {"p90", dwell.p90}, {"max", dwell.max}};
}

json chain_part(const PrototypesReport& report) {
  json states = json::array();
  for (const ChainState& state : report.chain) {
    const bool start = state.state == kStartState;
    json transitions = json::array();
    for (const ChainState::Transition& transition : state.transitions)
      transitions.push_back({{"to", state_key(transition.to)},
                             {"count", transition.count},
                             {"jump_probability", transition.jump},
                             {"step_probability", transition.leave},
                             {"dwell", start ? json() : dwell_json(transition.dwell)}});
    states.push_back({{"state", state_key(state.state)},
                      {"visits", state.visits},
                      {"steps", state.steps},
                      {"stay_probability", state.stay},
                      {"dwell", start ? json() : dwell_json(state.dwell)},
                      {"transitions", std::move(transitions)}});
  }
  return states;
}

}  // namespace

std::string prototypes_json(const PrototypesReport& report) {
  json bins = json::array();
  for (std::size_t bin = 0; bin < report.bins.count(); ++bin) bins.push_back(report.bins.from(bin));
  const PrototypeSet& set = report.prototypes;
  const json document = {
      {"schema", 1},
      {"executions", set.executions},
      {"executions_without_phase", report.without_phase_count},
      {"step_seconds", report.step_seconds ? json(*report.step_seconds) : json()},
      {"bins", std::move(bins)},
      {"cover", report.cover},
      {"covered", set.covered},
      {"distinct", set.distinct},
      {"prototypes", prototypes_part(report)},
      {"min_share", report.min_share},
      {"tree",
       {{"count", report.tree.count},
        {"ends", report.tree.ends},
        {"rest", report.tree.rest},
        {"children", branches_json(report, report.tree)}}},
      {"chain", chain_part(report)}};
  return document.dump() + "\n";
}

}  // namespace cgphase
