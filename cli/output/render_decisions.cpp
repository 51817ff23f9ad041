// Renders explain, events, history and the replies to acting verbs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/text.h"
#include "cli/output/render.h"
#include "cli/output/table.h"
#include "cli/output/time_text.h"
#include "cli/output/view.h"
#include "policy/decision.h"
#include "protocol/sentence.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr std::size_t kEarlierShown = 10;

std::string time_cell(WallTime time, const TextStyle& style) {
  return time_text(seconds_since_epoch(time), style.utc);
}

bool is_cpu(const Decision& decision) {
  return decision.resource == Resource::cpu || decision.resource == Resource::cpu_weight;
}
bool is_weight(const Decision& decision) { return decision.resource == Resource::cpu_weight; }

std::string amount(const Decision& decision, double value) {
  return is_cpu(decision) ? cores_text(value) + " cores" : bytes_text(value);
}

std::string limit_amount(const Decision& decision, const Limits& limits) {
  if (is_weight(decision)) return "weight " + count_text(real(limits.cpu_weight));
  if (decision.resource == Resource::freeze) return limits.frozen == true ? "frozen" : "running";
  const auto value =
      is_cpu(decision) ? real(limits.cpu_cores()) : real(limits.memory_bytes());
  return value ? amount(decision, *value) : "no limit";
}

std::string outcome_text(const std::optional<JournalOutcome>& entry, const TextStyle& style) {
  if (!entry) return "-";
  const Outcome& outcome = entry->outcome;
  const std::string detail = printable(outcome.detail);
  const std::string text =
      outcome.kind == OutcomeKind::written
          ? detail
          : to_string(outcome.kind) + (detail.empty() ? "" : ", " + detail);
  return text + " at " + time_cell(entry->time, style);
}

std::string percent(std::optional<double> ratio) {
  return ratio ? fmt::format("{:.2f} %", *ratio * 100) : "-";
}

std::string inputs_text(const Decision& decision) {
  const Evidence& facts = decision.evidence;
  std::string text = amount(decision, decision.usage) + (is_cpu(decision) ? " used" : " needed");
  const auto add = [&](Fact fact, const char* words) {
    if (facts[fact].value_or(0) > 0) text += ", " + bytes_text(facts[fact]) + words;
  };
  if (is_cpu(decision)) {
    text += ", throttled " + percent(facts[Fact::throttled_ratio]);
  } else {
    add(Fact::memory_peak_need_bytes, " recent peak");
    add(Fact::memory_current_bytes, " charged");
    add(Fact::memory_growth_bytes_per_sec, "/s of growth");
  }
  if (const auto runs = facts[Fact::earlier_runs]; runs && *runs > 0)
    text += ", " + count_text(runs) + " earlier runs";
  return text;
}

std::string pressure_text(const Evidence& facts) {
  return "cpu " + percent(facts[Fact::cpu_some_avg10]) + ", memory " +
         percent(facts[Fact::memory_some_avg10]) + " (full " +
         percent(facts[Fact::memory_full_avg10]) + "), io " + percent(facts[Fact::io_some_avg10]) +
         "; " + count_text(facts[Fact::refaults_per_sec]) + " refaults/s, " +
         count_text(facts[Fact::major_faults_per_sec]) + " major faults/s";
}

std::string rails_text(const Decision& decision) {
  const auto floor = decision.evidence[Fact::floor];
  return to_string(decision.verdict) +
         (floor ? ", floor " + amount(decision, *floor) : std::string());
}

std::string decision_details(const ExplainedDecision& one, const Limits& original,
                             const TextStyle& style) {
  const auto& [time, decision, writer] = one.entry.decision;
  Table table({{"", Table::Align::left}, {"", Table::Align::left}});
  const auto line = [&](const char* title, std::string text) {
    table.add({{title, Tone::dim}, {std::move(text), Tone::plain}});
  };
  line("decision", fmt::format("{} at {}", decision.decision_id, time_cell(time, style)));
  line("inputs", inputs_text(decision));
  line("pressure", pressure_text(decision.evidence));
  line("phase", fmt::format("{} ({}), distance {:.3g}, margin {:.3g}",
                            phase_letter(decision.phase), to_string(decision.phase.state),
                            decision.phase.distance, decision.phase.margin));
  const std::string statistic = amount(decision, decision.statistic);
  if (decision.reason == Reason::pinned) line("pin asks for", statistic);
  else if (!is_weight(decision))
    line("statistic", statistic + " from " + count_text(decision.sample_count) + " samples");
  line("reason", to_string(decision.reason));
  line("safety rules", rails_text(decision));
  line("limit", limit_amount(decision, decision.old_limits) + " -> " +
                    limit_amount(decision, decision.new_limits));
  if (decision.resource == Resource::memory && !soft_limit_text(original).empty())
    line("original", soft_limit_text(original));
  line("written", outcome_text(one.entry.written, style));
  line("trial", outcome_text(one.entry.end, style));
  TextStyle bare = style;
  bare.legend = false;
  return table.text(bare);
}

std::string earlier(const std::vector<ExplainedDecision>& decisions, const TextStyle& style) {
  if (decisions.size() < 2) return "";
  std::string text = style.legend ? "\nearlier\n" : "\n";
  for (std::size_t i = 1; i < decisions.size() && i <= kEarlierShown; ++i)
    text += time_cell(decisions[i].entry.decision.time, style) + "  " +
            printable(decisions[i].sentence) + "\n";
  return text;
}

}  // namespace

std::string render_explain(const ExplainReply& reply, const TextStyle& style) {
  std::string text = printable(reply.sentence) + "\n";
  const Limits& original = reply.container.original;
  if (!reply.decisions.empty())
    text += "\n" + decision_details(reply.decisions.front(), original, style);
  else if (const std::string soft = soft_limit_text(original); !soft.empty())
    text += "\noriginal  " + soft + "\n";
  return text + earlier(reply.decisions, style);
}

Result<std::string> render_events(const EventsReply& reply, const TextStyle& style) {
  std::string text;
  for (const json& event : reply.events) {
    const Result<EventReport> report = read_reply<EventReport>(event);
    if (!report) return std::unexpected(report.error());
    text += time_cell(report->time, style) + "  " + printable(report->sentence) + "\n";
  }
  if (text.empty() && style.legend) return "no events in this time\n";
  return text;
}

std::string render_history(const HistoryReply& reply, const TextStyle& style) {
  using enum Table::Align;
  if (!reply.points || reply.points->empty())
    return style.legend ? "no history in this time\n" : "";
  Table table({{"TIME", left}, {"PHASE", left}, {"CPU", right}, {"CPU LIMIT", right},
               {"NEED", right}, {"CHARGED", right}, {"MEMORY LIMIT", right}});
  for (const HistoryRow& row : *reply.points)
    table.add({{time_cell(row.time, style), Tone::plain},
               {phase_letter(row.phase), Tone::plain},
               {cores_text(row.cpu_cores), Tone::plain},
               {cores_text(real(row.limits.cpu_cores())), Tone::plain},
               {bytes_text(real(row.memory_need_bytes)), Tone::plain},
               {bytes_text(real(row.memory_current_bytes)), Tone::plain},
               {bytes_text(real(row.limits.memory_bytes())), Tone::plain}});
  return table.text(style);
}

std::string render_action(const ActionReport& report, const TextStyle& style) {
  std::string text = printable(report.done) + "\n";
  for (const std::string& change : report.changes) text += "  " + printable(change) + "\n";
  for (const std::string& failed : report.failures)
    text += "  " + toned("failed: " + printable(failed), Tone::bad, style) + "\n";
  if (!report.undo.empty() && style.legend) text += "undo: " + printable(report.undo) + "\n";
  return text;
}

}  // namespace cgphase
