#include "lab/replay/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "lab/replay/figures.h"
#include "model/trace_features.h"

namespace cgphase {
namespace {

bool needs_model(const PolicySpec& policy) {
  return is_ours(policy) || policy.name == "ai4dl-phase";
}

bool any_needs_model(const SweepPlan& plan) {
  return std::ranges::any_of(plan.entrants, [](const Entrant& entrant) {
    return needs_model(entrant.contender.policy);
  });
}

Result<SweepPlan> compared_plan(const std::string& word, const ReplaySettings& settings) {
  if (word == kControls) return control_plan(settings);
  const Result<PolicySpec> policy = parse_policy_spec(word);
  if (!policy) return failure(ErrorKind::invalid, "--compare: " + policy.error().text);
  return sweep_plan(*policy, settings);
}

bool anything_measured(const ContenderResult& result) {
  return std::ranges::any_of(kResources, [&](Resource resource) {
    return measured(sums_of(result, resource));
  });
}

// The provenance of training and merging names each trace by its CRC-32C.
bool was_trained_on(const Model& model, const TraceSource& trace) {
  const std::string crc = fmt::format(" crc32c {:08x}", trace.crc);
  return std::ranges::any_of(model.provenance, [&](const auto& told) {
    return told.second.find(crc) != std::string::npos;
  });
}

std::string last_part(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

}  // namespace

Result<ReplaySession> ReplaySession::create(const ReplayRequest& request) {
  ReplaySession session(request);
  if (const Status words = session.take_words(); !words) return std::unexpected(words.error());
  return session;
}

Status ReplaySession::take_words() {
  Result<Lineup> lineup = line_up(request_.lineup, request_.settings);
  if (!lineup) return std::unexpected(lineup.error());
  lineup_ = *std::move(lineup);
  for (const std::string& word : request_.compared) {
    Result<SweepPlan> plan = compared_plan(word, request_.settings);
    if (!plan) return std::unexpected(plan.error());
    compared_.push_back({*std::move(plan), {}});
  }
  for (const std::string& text : request_.assertions) {
    const auto known =
        check_assertion(text, lineup_.names, [](const MeasureName&) { return std::nullopt; });
    if (!known) return failure(ErrorKind::invalid, "--assert: " + known.error().text);
  }
  return {};
}

Result<ReplayReport> ReplaySession::run() {
  if (const Status status = read(); !status) return std::unexpected(status.error());
  enter();
  contest_.run(recorded_.input);
  ReplayReport report = empty_report();
  if (const Status status = take_results(report); !status)
    return std::unexpected(status.error());
  if (const Status status = compare_sweeps(report); !status)
    return std::unexpected(status.error());
  for (const std::string& text : request_.assertions)
    report.assertions.push_back(*check_assertion(
        text, lineup_.names, [&](const MeasureName& name) { return value(name); }));
  return report;
}

// A default model may be missing if no policy needs phases.
Status ReplaySession::read() {
  RecordedPaths& paths = request_.paths;
  std::error_code ignored;
  if (!request_.model_named && !std::filesystem::exists(paths.model, ignored)) {
    bool needed = !lineup_.all && std::ranges::any_of(lineup_.policies, needs_model);
    for (const EnteredPlan& compared : compared_) needed |= any_needs_model(compared.plan);
    if (needed)
      return failure(ErrorKind::invalid, paths.model + ": no model; name one with --model");
    paths.model.clear();
  }
  Result<Recorded> recorded = read_recorded(paths);
  if (!recorded) return std::unexpected(recorded.error());
  recorded_ = *std::move(recorded);
  const auto& engine = recorded_.input.engine;
  const bool rails = std::ranges::any_of(
      lineup_.entrants, [](const Entrant& entrant) { return entrant.settings.safety; });
  if (!rails || !engine || schema_columns(engine->model().schema).empty()) return {};
  if (request_.lineup.rails)
    return failure(ErrorKind::invalid,
                   paths.model + ": the daemon cannot use this model, it needs columns of "
                                 "traces; leave out --rails");
  request_.lineup.bare = true;
  compared_.clear();
  return take_words();
}

void ReplaySession::enter() {
  if (!request_.directory.empty())
    for (const std::size_t i : pictured(lineup_, kMostPlottedPolicies))
      lineup_.entrants[i].keep_limits = true;
  places_ = contest_.enter_all(lineup_.entrants);
  for (EnteredPlan& compared : compared_)
    for (Entrant entrant : compared.plan.entrants) {
      entrant.swept_only = true;
      compared.places.push_back(contest_.enter(entrant));
    }
}

bool ReplaySession::lacks_model(const PolicySpec& policy) const {
  return !recorded_.input.engine && needs_model(policy);
}

std::string ReplaySession::why_not(std::size_t entrant) const {
  const PolicySpec& policy = lineup_.entrants[entrant].contender.policy;
  if (lacks_model(policy)) return policy.name + ": needs a model (--model)";
  const auto& result = contest_.result(places_[entrant]);
  return result ? "" : result.error().text;
}

Status ReplaySession::take_results(ReplayReport& report) const {
  for (std::size_t i = 0; i < lineup_.entrants.size(); ++i) {
    const std::string why = why_not(i);
    if (why.empty())
      report.results.push_back(*contest_.result(places_[i]));
    else if (!lineup_.all)
      return failure(ErrorKind::invalid, why);
  }
  if (report.results.empty()) return failure(ErrorKind::invalid, left_out());
  if (std::ranges::any_of(report.results, anything_measured)) return {};
  return failure(
      ErrorKind::invalid,
      request_.paths.traces.front() +
          ": nothing to replay: no two successive rows have CPU use (columns cpu.usage.usec, "
          "cpu.usage, cpu.usage.cores) or memory use (memory.anon, mem.working.set, mem.current)");
}

std::string ReplaySession::left_out() const {
  std::vector<std::string> reasons;
  for (std::size_t i = 0; i < lineup_.entrants.size(); ++i) {
    std::string why = why_not(i);
    if (!why.empty() && std::ranges::find(reasons, why) == reasons.end())
      reasons.push_back(std::move(why));
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

bool ReplaySession::asks_for_phases() const {
  bool asked = std::ranges::any_of(lineup_.policies, needs_model);
  for (const EnteredPlan& compared : compared_) asked |= any_needs_model(compared.plan);
  return asked;
}

std::string ReplaySession::model_knows() const {
  const auto& engine = recorded_.input.engine;
  if (!engine || !asks_for_phases()) return "";
  std::vector<std::string> known;
  for (const TraceSource& trace : recorded_.traces)
    if (was_trained_on(engine->model(), trace)) known.push_back(escape_name(trace.path));
  if (known.empty()) return "";
  const bool one = known.size() == 1;
  return fmt::format("{} was trained on {}{}, which {} replayed: it knows {} future",
                     escape_name(request_.paths.model), known.front(),
                     one ? "" : fmt::format(" and {} more", known.size() - 1),
                     one ? "is" : "are", one ? "its" : "their");
}

Status ReplaySession::compare_sweeps(ReplayReport& report) const {
  if (compared_.empty()) return {};
  const Result<Sweep> a = sweep_of(compared_[0]), b = sweep_of(compared_[1]);
  for (const auto* sweep : {&a, &b})
    if (!*sweep) return std::unexpected(sweep->error());
  report.comparison = compare(*a, *b, request_.bootstrap);
  return {};
}

Result<Sweep> ReplaySession::sweep_of(const EnteredPlan& entered) const {
  Sweep sweep{entered.plan.name, {}, entered.plan.shipped};
  for (std::size_t i = 0; i < entered.places.size(); ++i) {
    Result<Swept> swept = contest_.swept(entered.places[i]);
    if (!swept) return std::unexpected(swept.error());
    sweep.points.push_back(
        {entered.plan.names[i], std::move(swept->cpu), std::move(swept->memory)});
  }
  return sweep;
}

std::optional<double> ReplaySession::value(const MeasureName& name) const {
  const std::size_t entrant = lineup_.named[name.policy];
  if (!why_not(entrant).empty()) return std::nullopt;
  const std::vector<ReplaySums> executions =
      sums_of(*contest_.result(places_[entrant]), name.resource);
  if (!measured(executions)) return std::nullopt;
  // These measures are not defined in an open loop.
  if (name.measure->closed_loop_only && !request_.settings.loop.enabled) return std::nullopt;
  return name.by_resource_hour ? weighted_by_resource_hour(*name.measure, executions)
                               : weighted_by_job(*name.measure, executions);
}

ReplayReport ReplaySession::empty_report() const {
  ReplayReport report;
  report.traces = recorded_.traces;
  report.training = recorded_.training;
  report.model_crc = recorded_.model_crc;
  report.compat_model_crc = recorded_.compat_model_crc;
  report.settings = request_.settings;
  report.cadence_seconds = recorded_.cadence_seconds;
  report.played_seconds = recorded_.played_seconds;
  report.bootstrap = request_.bootstrap;
  return report;
}

Result<std::vector<std::string>> ReplaySession::draw() const {
  std::vector<const ContenderResult*> shown;
  for (const std::size_t i : pictured(lineup_, kMostPlottedPolicies))
    if (why_not(i).empty()) shown.push_back(&*contest_.result(places_[i]));
  return write_figures(request_.directory,
                       execution_figures(recorded_.input, source_name(),
                                         last_part(request_.paths.model), shown));
}

std::string ReplaySession::source_name() const {
  const std::string& path = request_.paths.traces.front();
  const std::string first = path.starts_with("/proc/self/fd/") ? "this host" : last_part(path);
  const std::size_t more = request_.paths.traces.size() - 1;
  return more == 0 ? first : fmt::format("{} and {} more", first, more);
}

}  // namespace cgphase
