// The table of a replay, for people.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "cli/output/table.h"
#include "lab/replay/report.h"

namespace cgphase {
namespace {

using Align = Table::Align;

// Two significant digits, at most two decimals: "41 %", "4.1 %", "0.08 %".
std::string share(const std::optional<double>& ratio) {
  if (!ratio) return "-";
  const double percent = 100 * *ratio, size = std::abs(percent);
  if (size == 0) return "0 %";
  if (size < 0.005) return percent < 0 ? "> -0.01 %" : "< 0.01 %";
  return fmt::format("{:.{}f} %", percent, size < 1 ? 2 : size < 9.95 ? 1 : 0);
}

std::string shares(const std::optional<Interval>& interval) {
  if (!interval) return "-";
  return share(interval->low) + " to " + share(interval->high);
}

const Measure& the(std::string_view name) { return *find_measure(name); }

std::optional<double> by_job(std::string_view name, std::span<const ReplaySums> executions) {
  return weighted_by_job(the(name), executions);
}

std::string count(std::string_view name, std::span<const ReplaySums> executions) {
  return fmt::format("{:.0f}", by_job(name, executions).value_or(0));
}

// CPU only.
std::string waited(double core_seconds) {
  if (core_seconds == 0) return "0";
  return core_seconds < 0.005 ? "< 0.01 core-s" : fmt::format("{:.2f} core-s", core_seconds);
}

// Three significant digits: a short run wastes little.
std::string wastage(std::span<const ReplaySums> executions, bool memory) {
  const double hours = by_job("wastage", executions).value_or(0);
  return fmt::format("{} {}", hours < 100 ? fmt::format("{:.3g}", hours)
                                          : fmt::format("{:.0f}", hours),
                     memory ? "GB-h" : "core-h");
}

std::string plural(std::size_t number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

// ---- the sentence ----

// The policy in the first sentence: ours if it was replayed, as the daemon plays it.
const ContenderResult& main_result(const ReplayReport& report) {
  for (const bool safety : {true, false})
    for (const char* name : {"phase", "proactive"})
      for (const ContenderResult& result : report.results)
        if (result.safety == safety && result.contender.policy.name == name) return result;
  return report.results.front();
}

std::string given_back(std::span<const ReplaySums> executions, const char* what) {
  const double back = 1 - by_job("alloc_vs_static", executions).value_or(1);
  return fmt::format("{} of the {}", share(back), what);
}

std::string headline(const ReplayReport& report) {
  const ContenderResult& result = main_result(report);
  const auto cpu = sums_of(result, Resource::cpu), memory = sums_of(result, Resource::memory);
  const bool has_cpu = measured(cpu), has_memory = measured(memory);
  std::string text = escape_name(policy_name(result)) + " would have given back ";
  if (has_cpu) text += given_back(cpu, "CPU");
  if (has_cpu && has_memory) text += " and ";
  if (has_memory) text += given_back(memory, "memory");
  text += fmt::format(" of {} ({})", plural(report.executions(), "execution"),
                      human_duration(report.played_seconds));
  text += "; over its limit: ";
  if (has_cpu) text += share(by_job("samples_over", cpu)) + " of the CPU samples";
  if (has_cpu && has_memory) text += ", ";
  if (has_memory) {
    const ReplaySums total = total_of(memory);
    text += share(by_job("samples_over", memory)) + " of the memory samples; ";
    text += total.would_oom == 0
                ? "it would never have run out of memory"
                : fmt::format("out of memory in {} of {} windows", total.would_oom, total.windows);
  }
  return text + ".\n";
}

// ---- the tables ----

bool several_margins(const ReplayReport& report) {
  return std::ranges::any_of(report.results, [&](const ContenderResult& result) {
    return result.contender.margin != report.results.front().contender.margin;
  });
}

struct Row {
  const ContenderResult& result;
  Resource resource;
  std::vector<ReplaySums> executions;
};

std::vector<Row> rows_of(const ReplayReport& report) {
  std::vector<Row> rows;
  for (const Resource resource : kResources)
    for (const ContenderResult& result : report.results)
      if (auto executions = sums_of(result, resource); measured(executions))
        rows.push_back({result, resource, std::move(executions)});
  return rows;
}

std::vector<Table::Column> first_columns(const ReplayReport& report) {
  std::vector<Table::Column> columns = {{"RESOURCE", Align::left}, {"POLICY", Align::left}};
  if (several_margins(report)) columns.push_back({"MARGIN", Align::right});
  return columns;
}

std::vector<Table::Cell> first_cells(const ReplayReport& report, const Row& row) {
  std::vector<Table::Cell> cells = {{to_string(row.resource)},
                                    {escape_name(policy_name(row.result)), Tone::strong}};
  if (several_margins(report)) cells.push_back({share(row.result.contender.margin)});
  return cells;
}

constexpr std::array<std::pair<const char*, const char*>, 6> kRatios = {
    {{"ALLOCATED", "alloc_vs_static"},
     {"GAP", "gap_to_oracle"},
     {"SLACK", "slack"},
     {"OVER", "samples_over"},
     {"CLEAN", "windows_clean"},
     {"OVERRUN", "overrun_area"}}};

std::string main_table(const ReplayReport& report, const std::vector<Row>& rows,
                       const TextStyle& style) {
  std::vector<Table::Column> columns = first_columns(report);
  for (const auto& [title, name] : kRatios) columns.push_back({title, Align::right});
  for (const char* title : {"WASTAGE", "OOM", "UP", "DOWN"})
    columns.push_back({title, Align::right});
  if (report.settings.loop.enabled)
    for (const char* title : {"RAISED", "WAITED"}) columns.push_back({title, Align::right});
  Table table(columns);
  for (const Row& row : rows) {
    std::vector<Table::Cell> cells = first_cells(report, row);
    for (const auto& [title, name] : kRatios)
      cells.push_back({share(by_job(name, row.executions))});
    const bool memory = row.resource == Resource::memory;
    cells.push_back({wastage(row.executions, memory)});
    const std::string oom = memory ? count("would_oom", row.executions) : "-";
    cells.push_back({oom, memory && oom != "0" ? Tone::bad : Tone::plain});
    for (const char* name : {"writes_up", "writes_down"})
      cells.push_back({count(name, row.executions)});
    if (report.settings.loop.enabled) {
      cells.push_back({count("guard_raises", row.executions)});
      cells.push_back({memory ? "-"
                              : waited(*by_job("backlog_core_seconds", row.executions))});
    }
    table.add(std::move(cells));
  }
  return table.text(style);
}

// Values by resource-hour, and intervals of the two main values.
std::string second_table(const ReplayReport& report, const std::vector<Row>& rows,
                         const TextStyle& style) {
  std::vector<Table::Column> columns = first_columns(report);
  for (const auto& [title, name] : kRatios) columns.push_back({title, Align::right});
  for (const char* title : {"ALLOCATED 95 %", "OVER 95 %"})
    columns.push_back({title, Align::right});
  Table table(columns);
  const auto place = [](std::string_view name) {
    return static_cast<std::size_t>(find_measure(name) - all_measures().data());
  };
  for (const Row& row : rows) {
    std::vector<Table::Cell> cells = first_cells(report, row);
    for (const auto& [title, name] : kRatios)
      cells.push_back({share(weighted_by_resource_hour(the(name), row.executions))});
    const auto intervals = ratio_intervals(row.executions, report.bootstrap);
    for (const char* name : {"alloc_vs_static", "samples_over"})
      cells.push_back({shares(intervals[place(name)])});
    table.add(std::move(cells));
  }
  return table.text(style);
}

constexpr const char* kLegend =
    "ALLOCATED: of the original limit. GAP: 0 % is what oracle-max wants, 100 % the original.\n"
    "SLACK: unused, of the limit. OVER: samples above the limit. CLEAN: windows without one.\n"
    "OVERRUN: demand above the limit, of all demand. WASTAGE: unused limit, and for each OOM all\n"
    "memory allocated until then. OOM: windows in which memory would have run out.\n"
    "UP, DOWN: limits written.";
constexpr const char* kLoopLegend =
    " RAISED: by the guard, in between. WAITED: CPU time that had to wait.";

// ---- the lines below ----

std::string censored_line(const std::vector<Row>& rows) {
  std::string text;
  double most = 0;
  for (const Resource resource : kResources) {
    const auto row = std::ranges::find(rows, resource, &Row::resource);
    if (row == rows.end()) continue;
    const std::optional<double> censored = by_job("censored", row->executions);
    most = std::max(most, censored.value_or(0));
    text += fmt::format("{}{} of the {} samples", text.empty() ? "" : " and ", share(censored),
                        resource == Resource::cpu ? "CPU" : "memory");
  }
  if (most == 0) return "While recorded, no sample reached its limit.\n";
  return "While recorded, " + text + " reached their limit: their real demand is not known.\n";
}

std::string settings_line(const ReplayReport& report) {
  const ReplaySettings& settings = report.settings;
  std::string text =
      settings.loop.enabled
          ? fmt::format("Closed loop: a guard raises {} after demand reaches {} of the limit",
                        human_duration(settings.loop.time_to_raise_seconds),
                        share(settings.loop.guard_threshold))
          : std::string("Open loop: nothing raises a limit before the next decision");
  text += settings.step_seconds > 0
              ? fmt::format("; a decision each {}", human_duration(settings.step_seconds))
              : fmt::format("; a decision at each sample ({})",
                            human_duration(std::round(report.cadence_seconds * 100) / 100));
  return text + fmt::format("; windows of {}; risk {:.6g} %.\n",
                            human_duration(settings.window_seconds), 100 * settings.risk);
}

std::string interval_line(const ReplayReport& report) {
  if (report.executions() < 2) return "One execution: no confidence intervals.\n";
  if (report.bootstrap.resamples < 1) return "";
  return fmt::format("95 %: interval of the mean over executions, from {} resamples, seed {}.\n",
                     report.bootstrap.resamples, report.bootstrap.seed);
}

// ---- the comparison ----

std::vector<Table::Cell> comparison_cells(const ResourceComparison& resource,
                                          const MatchedCosts& costs) {
  std::vector<Table::Cell> cells = {
      {to_string(resource.resource)},
      {costs.shipped ? fmt::format("{} (as shipped)", share(costs.violation))
                     : share(costs.violation)}};
  for (const auto& cost : {costs.a, costs.b}) {
    cells.push_back({cost ? share(cost->above_oracle) : "-"});
    cells.push_back({cost ? fmt::format("{:.0f}", cost->writes) : "-"});
    cells.push_back({cost ? escape_name(cost->point) : "never this few over"});
  }
  cells.push_back({costs.ratio ? fmt::format("{:.2f}", *costs.ratio) : "-"});
  cells.push_back({shares(costs.difference)});
  return cells;
}

std::string comparison_text(const Comparison& comparison, const TextStyle& style) {
  Table table({{"RESOURCE", Align::left}, {"AT MOST OVER", Align::right},
               {"A", Align::right}, {"WRITES", Align::right}, {"SETTING", Align::left},
               {"B", Align::right}, {"WRITES", Align::right}, {"SETTING", Align::left},
               {"A / B", Align::right}, {"A - B, 95 %", Align::right}});
  for (const ResourceComparison& resource : comparison.resources)
    for (const MatchedCosts& costs : resource.levels) table.add(comparison_cells(resource, costs));
  return fmt::format("\nAllocated above oracle-max, of the original limit, at the same share of "
                     "samples over: A is {}, B is {}.\n",
                     escape_name(comparison.a), escape_name(comparison.b)) +
         table.text(style);
}

std::string assertions_line(const std::vector<AssertionReport>& assertions) {
  const auto held = std::ranges::count(assertions, true, &AssertionReport::holds);
  return fmt::format("\nassertions that hold: {} of {}\n", held, assertions.size());
}

}  // namespace

std::string replay_text(const ReplayReport& report, const TextStyle& style) {
  const std::vector<Row> rows = rows_of(report);
  if (rows.empty()) return "No measured sample can be compared with a limit.\n";
  std::string out = headline(report) + "\n" + main_table(report, rows, style);
  if (style.legend)
    out += std::string("\n") + kLegend + (report.settings.loop.enabled ? kLoopLegend : "") + "\n";
  out += "\nThe same weighted by resource-hour, not by execution:\n" +
         second_table(report, rows, style);
  out += "\n" + interval_line(report) + censored_line(rows) + settings_line(report);
  if (report.comparison) out += comparison_text(*report.comparison, style);
  if (!report.assertions.empty()) out += assertions_line(report.assertions);
  return out;
}

}  // namespace cgphase
