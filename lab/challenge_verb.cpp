// `cgphase model challenge`: trains a model on this host's history and installs it if it beats the
// one in use.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/parse.h"
#include "base/text.h"
#include "cli/commands/model_change.h"
#include "cli/commands/verbs.h"
#include "cli/host_history.h"
#include "cli/offline.h"
#include "cli/options.h"
#include "cli/output/table.h"
#include "cli/output/time_text.h"
#include "cli/output/view.h"
#include "lab/challenge.h"
#include "model/train/train.h"
#include "policy/policy.h"
#include "policy/safety_config.h"

namespace cgphase {
namespace {

using nlohmann::json;

struct ChallengeWords {
  ChallengeOptions challenge;
  std::string model, state_dir, least;
  std::string clusters = std::to_string(ChallengeOptions{}.clusters);
  bool dry_run = false, exit_code = false;
};

std::optional<Complaint> take_words(ChallengeWords& words) {
  ChallengeOptions& options = words.challenge;
  if (!words.least.empty()) {
    const auto ns = parse_duration_ns(words.least);
    if (!ns)
      return Complaint{Exit::usage,
                       "--least " + escape_name(words.least) + " is not a duration (30m, 6h, 2d)"};
    options.bounds.least_seconds = static_cast<double>(*ns) / 1e9;
  }
  const auto count = parse_u64(words.clusters);
  if (words.clusters == "auto") options.clusters = kAutomaticClusters;
  else if (!count || *count < 1 || *count > std::uint64_t{kMaxPhases})
    return Complaint{Exit::usage, fmt::format("--clusters {}: must be 1..{} or auto",
                                              escape_name(words.clusters), kMaxPhases)};
  else options.clusters = static_cast<int>(*count);
  return std::nullopt;
}

std::optional<Complaint> take_setting(const HostSetting& host, ChallengeOptions& options) {
  const Result<PolicySpec> policy = parse_policy_spec(host.policy);
  if (!policy) return complaint(policy.error()).error();
  options.policy = *policy;
  options.risk = host.risk.value_or(kShippedRisk);
  options.loop.guard_threshold = host.at_risk_ratio.value_or(SafetyConfig{}.at_risk_ratio);
  return std::nullopt;
}

json resource_json(const std::optional<ReplaySums>& sums) {
  if (!sums) return nullptr;
  return {{"alloc_vs_static", find_measure("alloc_vs_static")->of(*sums).value_or(0)},
          {"samples", sums->samples},
          {"samples_over", sums->samples_over},
          {"would_oom", sums->would_oom},
          {"throttled_seconds", sums->throttled_seconds}};
}

json side_json(const ChallengeSide& side) {
  return {{"cpu", resource_json(side.cpu)}, {"memory", resource_json(side.memory)}};
}

json report_json(const ChallengeReport& report, const HostSetting& host,
                 const std::string& verdict) {
  json body = {{"champion", side_json(report.champion)},
               {"challenger", side_json(report.challenger)},
               {"verdict", verdict},
               {"installed", false},
               {"policy", host.policy},
               {"windows", report.windows}};
  body["champion"]["path"] = escape_name(host.model);
  if (report.model) body["challenger"]["phases"] = report.model->centroids.count;
  if (report.split.training_rows > 0)
    body["split"] = {{"begin_seconds", seconds_since_epoch(report.split.begin)},
                     {"cut_seconds", seconds_since_epoch(report.split.cut)},
                     {"end_seconds", seconds_since_epoch(report.split.end)},
                     {"training_rows", report.split.training_rows},
                     {"held_out_rows", report.split.held_out_rows}};
  return ok_reply(std::move(body));
}

void add_sides(Table& table, const json& body) {
  for (const char* resource : {"cpu", "memory"})
    for (const char* side : {"champion", "challenger"}) {
      const auto number = [&](const char* key) {
        return view_number(body, fmt::format("/{}/{}/{}", side, resource, key).c_str());
      };
      if (!number("samples")) continue;
      table.add({{resource, Tone::plain},
                 {std::string_view(side) == "champion" ? "in use" : "new", Tone::plain},
                 {percent_text(number("alloc_vs_static")), Tone::plain},
                 {count_text(number("samples_over")), Tone::plain},
                 {count_text(number("samples")), Tone::plain},
                 {count_text(number("would_oom")), Tone::plain}});
    }
}

std::string render_challenge(const json& body, const TextStyle& style) {
  std::string out;
  if (view_number(body, "/split/cut_seconds")) {
    const auto time = [&](const char* path) {
      return time_text(view_number(body, path).value_or(0), style.utc);
    };
    out += fmt::format("trained on {} rows before {}, compared on {} rows until {}, policy {}\n",
                       count_text(view_number(body, "/split/training_rows")),
                       time("/split/cut_seconds"),
                       count_text(view_number(body, "/split/held_out_rows")),
                       time("/split/end_seconds"), view_text(body, "/policy"));
    Table table({{"", Table::Align::left}, {"MODEL", Table::Align::left},
                 {"ALLOCATED", Table::Align::right}, {"SAMPLES OVER", Table::Align::right},
                 {"OF", Table::Align::right}, {"WOULD OOM", Table::Align::right}});
    add_sides(table, body);
    out += table.text(style);
  }
  out += view_text(body, "/verdict") + "\n";
  const std::string undo = view_text(body, "/change/undo");
  if (!undo.empty() && style.legend) out += "undo: " + undo + "\n";
  return out;
}

const Form kChallengeForm{.text = render_challenge};

// Provenance of the model, printed by `model show`.
void add_provenance(Model& model, const ChallengeReport& report, const HostSetting& host,
                    const std::string& policy) {
  const auto rows = [](std::size_t count, WallTime from, WallTime until) {
    return fmt::format("{} rows from {} to {}", count, time_text(seconds_since_epoch(from), true),
                       time_text(seconds_since_epoch(until), true));
  };
  model.provenance["challenge"] = "won against " + escape_name(host.model) + " by " + policy;
  model.provenance["trained on"] =
      rows(report.split.training_rows, report.split.begin, report.split.cut);
  model.provenance["held out"] =
      rows(report.split.held_out_rows, report.split.cut, report.split.end);
}

// Installs the new model if it won, and returns the report.
OrComplaint<json> conclude(ChallengeReport report, const ChallengeWords& words,
                           const HostSetting& host, const CommonOptions& common) {
  const std::string& why = report.too_little.empty() ? report.lost : report.too_little;
  if (!why.empty())
    return report_json(report, host, "nothing is changed: " + why);
  add_provenance(*report.model, report, host, host.policy);
  const std::string text = serialize_model(*report.model);
  if (words.dry_run)
    return report_json(report, host, "the new model wins; nothing is changed (--dry-run)");
  if (words.model.empty()) {  // the model in use may have changed during hours of training
    const auto now = host_setting(common, words.state_dir);
    if (!now) return std::unexpected(now.error());
    if (now->model != host.model || now->model_set_at != host.model_set_at)
      return report_json(report, host,
                         "nothing is changed: another model was installed meanwhile, and the new "
                         "model was not compared with it");
  }
  const auto change = install_model(common, host, text);
  if (!change) return std::unexpected(change.error());
  json body = report_json(report, host, "the new model wins: " + change->done);
  body["installed"] = true;
  body["change"] = to_json(*change);
  return body;
}

OrComplaint<json> run(ChallengeWords& words, const CommonOptions& common) {
  if (auto wrong = take_words(words)) return std::unexpected(*wrong);
  auto host = host_setting(common, words.state_dir);
  if (!host) return std::unexpected(host.error());
  // Check before hours of work, not after them.
  if (!words.dry_run)
    if (auto wrong = check_may_change(*host)) return std::unexpected(*wrong);
  if (!words.model.empty()) host->model = words.model;
  if (auto wrong = take_setting(*host, words.challenge)) return std::unexpected(*wrong);
  const Result<Model> champion = load_model(host->model);
  if (!champion) return complaint(champion.error());
  std::optional<HostTrace> recorded;
  if (words.challenge.traces.empty()) {
    auto trace = host_trace({.socket = common.socket, .state_dir = words.state_dir,
                             .containers = {}, .since = {}, .until = {}});
    if (!trace) return std::unexpected(trace.error());
    recorded = *std::move(trace);
    words.challenge.traces = {recorded->path};
  }
  Result<ChallengeReport> report = challenge(*champion, words.challenge);
  if (!report) return complaint(report.error());
  return conclude(*std::move(report), words, *host, common);
}

int challenge_verb(ChallengeWords words, const CommonOptions& common) {
  const auto body = run(words, common);
  if (!body) return complain(body.error());
  const bool failed = !view_array(*body, "/change/failures").empty();
  if (!common.silent() || failed)
    if (const int printed = print(kChallengeForm, *body, common); printed != 0) return printed;
  if (failed) return static_cast<int>(Exit::failure);
  const bool done = view_flag(*body, "/installed");
  return done || !words.exit_code ? 0 : static_cast<int>(Exit::not_met);
}

}  // namespace

void add_challenge_verb(CLI::App& app, const CommonOptions& options, int& exit_code) {
  CLI::App* const verb = app.get_subcommand("model")->add_subcommand(
      "challenge",
      "Train a model on this host's history and install it if it beats the one in use (admin)");
  verb->footer(
      "It compares on the newest part of the history. An enabled cgphase-train.timer does this "
      "each night.");
  const auto words = std::make_shared<ChallengeWords>();
  verb->add_option("traces", words->challenge.traces,
                   "Traces to use instead of this host's history")
      ->type_name("TRACE");
  verb->add_option("--model", words->model, "Model to beat [the one in use]")->type_name("FILE");
  verb->add_option("--least", words->least, "Shortest history; with less nothing is done [1d]")
      ->type_name("DURATION");
  verb->add_option("--clusters", words->clusters, "Number of phases, or auto")
      ->type_name("N|auto")
      ->capture_default_str();
  verb->add_flag("--dry-run", words->dry_run, "Compare only; install nothing");
  verb->add_flag("--exit-code", words->exit_code, "Exit with 7 if nothing was installed");
  verb->add_option("--state-dir", words->state_dir, "State directory of a daemon that does not run")
      ->type_name("DIR");
  verb->callback([words, &options, &exit_code] { exit_code = challenge_verb(*words, options); });
}

}  // namespace cgphase
