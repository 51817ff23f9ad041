// JSON and CSV of a replay.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/output/table.h"
#include "lab/replay/report.h"

namespace cgphase {
namespace {

using nlohmann::json;

json number(const std::optional<double>& value) { return value ? json(*value) : json(); }

json value_json(const Measure& measure, const std::optional<double>& value) {
  if (value && measure.kind == Measure::Kind::count) return static_cast<std::int64_t>(*value);
  return number(value);
}

json interval_json(const std::optional<Interval>& interval) {
  return interval ? json::array({interval->low, interval->high}) : json();
}

std::string hex(std::uint32_t crc) { return fmt::format("{:08x}", crc); }

bool reported(const Measure& measure, const ReplaySettings& settings) {
  return settings.loop.enabled || !measure.closed_loop_only;
}

json values_json(std::span<const ReplaySums> executions, const ReplaySettings& settings) {
  json body = json::object();
  for (const Measure& measure : all_measures())
    if (reported(measure, settings))
      body[measure.name] = value_json(measure, weighted_by_job(measure, executions));
  return body;
}

json by_hour_json(std::span<const ReplaySums> executions) {
  json body = json::object();
  for (const Measure& measure : all_measures())
    if (measure.kind == Measure::Kind::ratio)
      body[measure.name] = number(weighted_by_resource_hour(measure, executions));
  return body;
}

json bootstrap_json(std::span<const ReplaySums> executions, const BootstrapOptions& options) {
  const auto intervals = ratio_intervals(executions, options);
  json body = json::object();
  std::size_t i = 0;
  for (const Measure& measure : all_measures())
    if (measure.kind == Measure::Kind::ratio)
      body[measure.name] = interval_json(intervals[i++]);
  return body;
}

json by_execution_json(const ContenderResult& result, Resource resource,
                       std::span<const ReplaySums> executions, const ReplaySettings& settings) {
  json all = json::array();
  for (std::size_t i = 0; i < executions.size(); ++i) {
    if (!(executions[i].seconds > 0)) continue;
    const ExecutionResult& execution = result.executions[i];
    json body = values_json(executions.subspan(i, 1), settings);
    body["id"] = escape_name(execution.id);
    body["service"] = escape_name(execution.service);
    body["original_from"] =
        to_string(resource == Resource::cpu ? execution.cpu_by : execution.memory_by);
    body["seconds"] = executions[i].seconds;
    all.push_back(std::move(body));
  }
  return all;
}

json who_json(const ContenderResult& result, Resource resource) {
  return {{"name", policy_name(result)},
          {"margin", result.contender.margin},
          {"rails", result.safety},
          {"resource", to_string(resource)}};
}

json policy_json(const ReplayReport& report, const ContenderResult& result, Resource resource,
                 std::span<const ReplaySums> executions) {
  json body = values_json(executions, report.settings);
  body.update(who_json(result, resource));
  body["seconds"] = total_of(executions).seconds;
  body["by_resource_hour"] = by_hour_json(executions);
  body["bootstrap"] = bootstrap_json(executions, report.bootstrap);
  body["by_execution"] = by_execution_json(result, resource, executions, report.settings);
  if (report.settings.loop.enabled)
    body["time_to_raise_ms"] = report.settings.loop.time_to_raise_seconds * 1000;
  if (report.settings.loop.enabled || result.safety)
    body["guard_threshold"] = result.guard_threshold;
  return body;
}

json policies_json(const ReplayReport& report) {
  json all = json::array();
  for (const ContenderResult& result : report.results)
    for (const Resource resource : kResources)
      if (const auto executions = sums_of(result, resource); measured(executions))
        all.push_back(policy_json(report, result, resource, executions));
  return all;
}

json settings_json(const ReplaySettings& settings) {
  return {{"closed_loop", settings.loop.enabled},
          {"guard_threshold", settings.loop.guard_threshold},
          {"risk", settings.risk},
          {"step_seconds", settings.step_seconds},
          {"time_to_raise_ms", settings.loop.time_to_raise_seconds * 1000},
          {"window_seconds", settings.window_seconds}};
}

json traces_json(const std::vector<TraceSource>& traces) {
  json all = json::array();
  for (const TraceSource& trace : traces)
    all.push_back({{"path", escape_name(trace.path)}, {"crc32c", hex(trace.crc)}});
  return all;
}

json hashes_json(const ReplayReport& report) {
  json policies = json::array();
  for (const ContenderResult& result : report.results)
    policies.push_back({{"name", policy_name(result)},
                        {"margin", result.contender.margin},
                        {"crc32c", hex(decisions_crc(result))}});
  json body = {{"decisions", hex(decisions_crc(report))},
               {"policies", std::move(policies)},
               {"traces", traces_json(report.traces)},
               {"training", traces_json(report.training)}};
  body["model"] = report.model_crc ? json(hex(*report.model_crc)) : json();
  body["compat_model"] = report.compat_model_crc ? json(hex(*report.compat_model_crc)) : json();
  return body;
}

json cost_json(const std::optional<SweepCost>& cost) {
  if (!cost) return nullptr;
  return {{"above_oracle", cost->above_oracle}, {"setting", cost->point},
          {"writes", static_cast<std::int64_t>(cost->writes)}};
}

json comparison_json(const Comparison& comparison) {
  json resources = json::array();
  for (const ResourceComparison& resource : comparison.resources) {
    json levels = json::array();
    for (const MatchedCosts& costs : resource.levels)
      levels.push_back({{"a", cost_json(costs.a)},
                        {"b", cost_json(costs.b)},
                        {"difference", interval_json(costs.difference)},
                        {"ratio", number(costs.ratio)},
                        {"samples_over", costs.violation},
                        {"shipped", costs.shipped}});
    resources.push_back({{"resource", to_string(resource.resource)}, {"at", std::move(levels)}});
  }
  return {{"a", comparison.a}, {"b", comparison.b}, {"resources", std::move(resources)}};
}

json assertions_json(const std::vector<AssertionReport>& assertions) {
  json all = json::array();
  for (const AssertionReport& assertion : assertions)
    all.push_back({{"text", escape_name(assertion.text)},
                   {"holds", assertion.holds},
                   {"left", number(assertion.left)},
                   {"right", number(assertion.right)}});
  return all;
}

// Formatted as in JSON; empty if absent.
std::string field(const json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

std::string replay_json(const ReplayReport& report) {
  json body = {{"schema", 1},
               {"traces", report.traces.size()},
               {"executions", report.executions()},
               {"settings", settings_json(report.settings)},
               {"policies", policies_json(report)},
               {"hashes", hashes_json(report)}};
  if (report.comparison) body["compare"] = comparison_json(*report.comparison);
  if (!report.assertions.empty()) body["assertions"] = assertions_json(report.assertions);
  return body.dump() + "\n";
}

std::string replay_jsonl(const ReplayReport& report) {
  std::string out;
  for (const ContenderResult& result : report.results)
    for (const Resource resource : kResources)
      for (json& line : by_execution_json(result, resource, sums_of(result, resource),
                                          report.settings)) {
        line.update(who_json(result, resource));
        out += line.dump() + "\n";
      }
  return out;
}

std::string replay_csv(const ReplayReport& report, bool legend) {
  std::vector<std::string> titles = {"name", "margin", "resource"};
  for (const Measure& measure : all_measures())
    if (reported(measure, report.settings)) titles.emplace_back(measure.name);
  std::string out = legend ? csv_record(titles) : "";
  for (const json& policy : policies_json(report)) {
    std::vector<std::string> fields;
    for (const std::string& title : titles) fields.push_back(field(policy.at(title)));
    out += csv_record(fields);
  }
  return out;
}

}  // namespace cgphase
