// Renders explain, events, history and the replies to acting verbs.
#include <fmt/format.h>

#include "cli/output/render.h"
#include "cli/output/table.h"
#include "cli/output/time_text.h"
#include "cli/output/view.h"
#include "policy/decision.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr std::size_t kEarlierShown = 10;

std::string time_cell(const json& body, const char* path, const TextStyle& style) {
  const auto seconds = view_number(body, path);
  return seconds ? time_text(*seconds, style.utc) : "-";
}

bool is_cpu(const json& decision) { return view_text(decision, "/resource") == "cpu"; }

std::string amount(const json& decision, const char* path) {
  const auto value = view_number(decision, path);
  return is_cpu(decision) ? cores_text(value) + " cores" : bytes_text(value);
}

std::string limit_amount(const json& decision, const char* which) {
  const std::string path = std::string(which) + (is_cpu(decision) ? "/cpu_cores" : "/memory_bytes");
  if (!view_number(decision, path.c_str())) return "no limit";
  return amount(decision, path.c_str());
}

std::string outcome_text(const json& entry, const std::string& path, const TextStyle& style) {
  if (!view(entry, path.c_str()).is_object()) return "-";
  const std::string kind = view_text(entry, (path + "/kind").c_str());
  const std::string detail = view_text(entry, (path + "/detail").c_str());
  return (kind == "written" ? detail : kind + (detail.empty() ? "" : ", " + detail)) + " at " +
         time_cell(entry, (path + "/time").c_str(), style);
}

std::optional<double> fact(const json& decision, const char* name) {
  return view_number(decision, (std::string("/facts/") + name).c_str());
}

std::string percent(std::optional<double> ratio) {
  return ratio ? fmt::format("{:.2f} %", *ratio * 100) : "-";
}

std::string inputs_text(const json& decision) {
  std::string text = amount(decision, "/usage") + (is_cpu(decision) ? " used" : " needed");
  const auto add = [&](const char* name, const char* words) {
    const auto value = fact(decision, name);
    if (value && *value > 0) text += ", " + bytes_text(value) + words;
  };
  if (is_cpu(decision)) {
    text += ", throttled " + percent(fact(decision, "throttled_ratio"));
  } else {
    add("memory_peak_need_bytes", " recent peak");
    add("memory_current_bytes", " charged");
    add("memory_growth_bytes_per_sec", "/s of growth");
  }
  if (const auto runs = fact(decision, "earlier_runs"); runs && *runs > 0)
    text += ", " + count_text(runs) + " earlier runs";
  return text;
}

std::string pressure_text(const json& decision) {
  return "cpu " + percent(fact(decision, "cpu_some_avg10")) + ", memory " +
         percent(fact(decision, "memory_some_avg10")) + " (full " +
         percent(fact(decision, "memory_full_avg10")) + "), io " +
         percent(fact(decision, "io_some_avg10")) + "; " +
         count_text(fact(decision, "refaults_per_sec")) + " refaults/s, " +
         count_text(fact(decision, "major_faults_per_sec")) + " major faults/s";
}

std::string rails_text(const json& decision) {
  std::string text = view_text(decision, "/verdict");
  const auto floor = fact(decision, "floor");
  if (floor && is_cpu(decision)) text += ", floor " + cores_text(floor) + " cores";
  if (floor && !is_cpu(decision)) text += ", floor " + bytes_text(floor);
  return text;
}

std::string decision_details(const json& entry, const TextStyle& style) {
  const json& decision = view(entry, "/decision");
  Table table({{"", Table::Align::left}, {"", Table::Align::left}});
  const auto line = [&](const char* title, std::string text) {
    table.add({{title, Tone::dim}, {std::move(text), Tone::plain}});
  };
  line("decision", count_text(view_number(decision, "/decision_id")) + " at " +
                       time_cell(decision, "/time", style));
  line("inputs", inputs_text(decision));
  line("pressure", pressure_text(decision));
  line("phase", view_text(decision, "/phase/letter") + " (" +
                    view_text(decision, "/phase/state") + "), distance " +
                    fmt::format("{:.3g}, margin {:.3g}",
                                view_number(decision, "/phase/distance").value_or(0),
                                view_number(decision, "/phase/margin").value_or(0)));
  if (view_text(decision, "/reason") == to_string(Reason::pinned))
    line("pin asks for", amount(decision, "/statistic"));
  else
    line("statistic", amount(decision, "/statistic") + " from " +
                          count_text(view_number(decision, "/sample_count")) + " samples");
  line("reason", view_text(decision, "/reason"));
  line("safety rules", rails_text(decision));
  line("limit", limit_amount(decision, "/old_limits") + " -> " +
                    limit_amount(decision, "/new_limits"));
  line("written", outcome_text(entry, "/written", style));
  line("trial", outcome_text(entry, "/outcome", style));
  TextStyle bare = style;
  bare.legend = false;
  return table.text(bare);
}

std::string earlier(const json& decisions, const TextStyle& style) {
  if (decisions.size() < 2) return "";
  std::string text = style.legend ? "\nearlier\n" : "\n";
  for (std::size_t i = 1; i < decisions.size() && i <= kEarlierShown; ++i)
    text += time_cell(decisions[i], "/decision/time", style) + "  " +
            view_text(decisions[i], "/sentence") + "\n";
  return text;
}

std::string letter_cell(const json& point) {
  const std::string letter = view_text(point, "/phase/letter");
  return letter.empty() ? "-" : letter;
}

}  // namespace

std::string render_explain(const json& body, const TextStyle& style) {
  const json& decisions = view_array(body, "/decisions");
  std::string text = view_text(body, "/sentence") + "\n";
  if (!decisions.empty()) text += "\n" + decision_details(decisions[0], style);
  return text + earlier(decisions, style);
}

std::string render_events(const json& body, const TextStyle& style) {
  std::string text;
  for (const json& event : view_array(body, "/events"))
    text += time_cell(event, "/time", style) + "  " + view_text(event, "/sentence") + "\n";
  if (text.empty() && style.legend) return "no events in this time\n";
  return text;
}

std::string render_history(const json& body, const TextStyle& style) {
  using enum Table::Align;
  const json& points = view_array(body, "/points");
  if (points.empty()) return style.legend ? "no history in this time\n" : "";
  Table table({{"TIME", left}, {"PHASE", left}, {"CPU", right}, {"CPU LIMIT", right},
               {"NEED", right}, {"CHARGED", right}, {"MEMORY LIMIT", right}});
  for (const json& point : points)
    table.add({{time_cell(point, "/time", style), Tone::plain},
               {letter_cell(point), Tone::plain},
               {cores_text(view_number(point, "/cpu_cores")), Tone::plain},
               {cores_text(view_number(point, "/limits/cpu_cores")), Tone::plain},
               {bytes_text(view_number(point, "/memory_need_bytes")), Tone::plain},
               {bytes_text(view_number(point, "/memory_current_bytes")), Tone::plain},
               {bytes_text(view_number(point, "/limits/memory_bytes")), Tone::plain}});
  return table.text(style);
}

std::string render_action(const json& body, const TextStyle& style) {
  std::string text = view_text(body, "/done") + "\n";
  for (const json& change : view_array(body, "/changes"))
    text += "  " + view_text(change, "") + "\n";
  for (const json& failed : view_array(body, "/failures"))
    text += "  " + toned("failed: " + view_text(failed, ""), Tone::bad, style) + "\n";
  const std::string undo = view_text(body, "/undo");
  if (!undo.empty() && style.legend) text += "undo: " + undo + "\n";
  return text;
}

}  // namespace cgphase
