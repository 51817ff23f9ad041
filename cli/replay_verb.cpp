#include "cli/replay_verb.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/offline.h"
#include "cli/print.h"
#include "cli/replay/assertion.h"
#include "cli/replay/contest.h"
#include "cli/replay/figures.h"
#include "cli/replay/lineup.h"
#include "cli/replay/recorded.h"
#include "cli/replay/report.h"
#include "cli/replay/sweep_plan.h"
#include "cli/replay/words.h"

namespace cgphase {
namespace {

constexpr double kLeastWindow = 1, kMostWindow = 7 * 86'400;
constexpr double kLeastStep = 0.001, kMostStep = 86'400;
constexpr double kLeastRaise = 0.001, kMostRaise = 3600;
constexpr double kLeastThreshold = 0.1, kMostThreshold = 1;
constexpr double kLeastRisk = 1e-6, kMostRisk = 0.5;

struct ReplayOptions {
  RecordedPaths paths{.model = kInstalledModel};
  bool model_named = false;
  LineupOptions lineup;
  ReplaySettings settings;
  std::vector<std::string> compared;  // two, or none
  std::vector<std::string> assertions;
  std::string directory;              // of the pictures
  BootstrapOptions bootstrap;
};

// ---- what is to be replayed ----

OrComplaint<std::vector<SweepPlan>> compared_plans(const ReplayOptions& options) {
  std::vector<SweepPlan> plans;
  for (const std::string& word : options.compared) {
    if (word == kControls) {
      plans.push_back(control_plan(options.settings));
      continue;
    }
    const Result<PolicySpec> policy = parse_policy_spec(word);
    if (!policy) return complaint(Exit::usage, "--compare " + policy.error().text);
    plans.push_back(sweep_plan(*policy, options.settings));
  }
  return plans;
}

OrComplaint<std::vector<Assertion>> parsed_assertions(const ReplayOptions& options,
                                                  const Lineup& lineup) {
  std::vector<Assertion> assertions;
  for (const std::string& text : options.assertions) {
    Result<Assertion> assertion = Assertion::parse(text, lineup.names);
    if (!assertion) return complaint(Exit::usage, "--assert " + assertion.error().text);
    assertions.push_back(*std::move(assertion));
  }
  return assertions;
}

// ---- the replay ----

bool needs_model(const PolicySpec& policy) {
  return is_ours(policy) || policy.name == "ai4dl-phase";
}

// A model that nobody named need not be there where no policy asks for phases.
OrComplaint<Recorded> read(const ReplayOptions& options, const Lineup& lineup,
                       const std::vector<SweepPlan>& compared) {
  RecordedPaths paths = options.paths;
  std::error_code ignored;
  if (!options.model_named && !std::filesystem::exists(paths.model, ignored)) {
    bool needed = !lineup.all && std::ranges::any_of(lineup.policies, needs_model);
    for (const SweepPlan& plan : compared)
      needed |= std::ranges::any_of(plan.entrants, [](const Entrant& entrant) {
        return needs_model(entrant.contender.policy);
      });
    if (needed)
      return complaint(Exit::invalid, paths.model + ": there is no model; name one with --model");
    paths.model.clear();
  }
  Result<Recorded> recorded = read_recorded(paths);
  if (!recorded) return complaint(recorded.error());
  return *std::move(recorded);
}

// A plan and the places of its entrants in the contest.
struct EnteredPlan {
  SweepPlan plan;
  std::vector<std::size_t> places;
};

Result<Sweep> sweep_of(const EnteredPlan& entered, const Contest& contest) {
  Sweep sweep{entered.plan.name, {}, entered.plan.shipped};
  for (std::size_t i = 0; i < entered.places.size(); ++i) {
    const auto& result = contest.result(entered.places[i]);
    if (!result) return std::unexpected(result.error());
    sweep.points.push_back({entered.plan.names[i], sums_of(*result, Resource::cpu),
                            sums_of(*result, Resource::memory)});
  }
  return sweep;
}

class ReplayVerb {
 public:
  ReplayVerb(const ReplayOptions& options, Lineup lineup, std::vector<SweepPlan> compared,
             Recorded recorded)
      : options_(options), lineup_(std::move(lineup)), recorded_(std::move(recorded)) {
    for (SweepPlan& plan : compared) compared_.push_back({std::move(plan), {}});
  }

  // Nothing is printed and no picture is there before all was replayed.
  OrComplaint<ReplayReport> run() {
    enter_all();
    contest_.run(recorded_.input);
    ReplayReport report = empty_report();
    if (auto taken = take_results(report); !taken) return std::unexpected(taken.error());
    if (!compared_.empty()) {
      const Result<Sweep> a = sweep_of(compared_[0], contest_);
      const Result<Sweep> b = sweep_of(compared_[1], contest_);
      if (!a) return complaint(a.error());
      if (!b) return complaint(b.error());
      report.comparison = compare(*a, *b, options_.bootstrap);
    }
    return report;
  }

  Assertion::Outcome check(const Assertion& assertion) const {
    return assertion.check([&](const MeasureName& name) -> std::optional<double> {
      const auto& result = contest_.result(places_[lineup_.named[name.policy]]);
      if (!result) return std::nullopt;
      const std::vector<ReplaySums> executions = sums_of(*result, name.resource);
      if (!measured(executions)) return std::nullopt;
      return name.by_resource_hour ? weighted_by_resource_hour(*name.measure, executions)
                                   : weighted_by_job(*name.measure, executions);
    });
  }

  Status draw() const {
    std::vector<Sweep> sweeps;
    for (const EnteredPlan& drawn : drawn_)
      if (Result<Sweep> sweep = sweep_of(drawn, contest_)) sweeps.push_back(*std::move(sweep));
    const Result<Sweep> controls = sweep_of(controls_, contest_);
    if (!controls) return std::unexpected(controls.error());
    std::vector<const ContenderResult*> shown;
    for (const std::size_t place : pictured(lineup_, kMostPlottedPolicies))
      if (const auto& result = contest_.result(places_[place])) shown.push_back(&*result);
    const std::string source = source_name();
    std::vector<Figure> figures = pareto_figures(sweeps, &*controls, source, subtitle());
    for (Figure& figure : execution_figures(recorded_.input, source, model_name(), shown))
      figures.push_back(std::move(figure));
    return write_figures(options_.directory, figures);
  }

 private:
  void enter_all() {
    if (!options_.directory.empty())
      for (const std::size_t i : pictured(lineup_, kMostPlottedPolicies))
        lineup_.entrants[i].keep_limits = true;
    places_ = contest_.enter_all(lineup_.entrants);
    for (EnteredPlan& plan : compared_) plan.places = contest_.enter_all(plan.plan.entrants);
    if (options_.directory.empty()) return;
    for (const bool ours : {true, false})
      for (const PolicySpec& policy : lineup_.policies) {
        if (is_ours(policy) != ours || policy.name == "oracle-max") continue;  // that is a line
        EnteredPlan& drawn = drawn_.emplace_back(sweep_plan(policy, options_.settings));
        drawn.places = contest_.enter_all(drawn.plan.entrants);
      }
    controls_.plan = control_plan(options_.settings);
    controls_.places = contest_.enter_all(controls_.plan.entrants);
  }

  ReplayReport empty_report() const {
    ReplayReport report;
    report.traces = recorded_.traces;
    report.training = recorded_.training;
    report.model_crc = recorded_.model_crc;
    report.compat_model_crc = recorded_.compat_model_crc;
    report.settings = options_.settings;
    report.cadence_seconds = recorded_.cadence_seconds;
    report.played_seconds = recorded_.played_seconds;
    report.bootstrap = options_.bootstrap;
    return report;
  }

  bool cannot_run(std::size_t i, std::string& why) const {
    const auto& result = contest_.result(places_[i]);
    if (!result) why = result.error().text;
    const PolicySpec& policy = lineup_.entrants[i].contender.policy;
    if (result && !recorded_.input.engine && needs_model(policy))
      why = policy.name + ": needs a model (--model)";
    return !why.empty();
  }

  OrComplaint<void> take_results(ReplayReport& report) const {
    std::vector<std::string> left_out;
    for (std::size_t i = 0; i < lineup_.entrants.size(); ++i) {
      std::string why;
      if (!cannot_run(i, why)) {
        report.results.push_back(*contest_.result(places_[i]));
      } else if (!lineup_.all) {
        return complaint(Exit::invalid, why);
      } else if (std::ranges::find(left_out, why) == left_out.end()) {
        left_out.push_back(why);
      }
    }
    if (!left_out.empty())
      complain(Exit::ok, fmt::format("replay leaves out: {}", fmt::join(left_out, "; ")));
    return {};
  }

  std::string source_name() const {
    const std::string first =
        std::filesystem::path(options_.paths.traces.front()).filename().string();
    const std::size_t more = options_.paths.traces.size() - 1;
    return more == 0 ? first : fmt::format("{} and {} more", first, more);
  }

  std::string model_name() const {
    return std::filesystem::path(options_.paths.model).filename().string();
  }

  std::string subtitle() const {
    const std::size_t count = recorded_.input.executions.size();
    return fmt::format("{} execution{}, {}, {} loop; each policy over its knob, as shipped where "
                       "the disc is",
                       count, count == 1 ? "" : "s", human_duration(recorded_.played_seconds),
                       options_.settings.loop.enabled ? "closed" : "open");
  }

  const ReplayOptions& options_;
  Lineup lineup_;
  Recorded recorded_;
  Contest contest_;
  std::vector<std::size_t> places_;     // of the lineup's entrants
  std::vector<EnteredPlan> compared_, drawn_;
  EnteredPlan controls_;
};

// ---- the verb ----

std::string value_text(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "no value";
}

// Whether all hold; one line for each that does not.
bool check_all(const ReplayVerb& replayed, const std::vector<Assertion>& assertions,
               ReplayReport& report) {
  bool all = true;
  for (const Assertion& assertion : assertions) {
    const Assertion::Outcome outcome = replayed.check(assertion);
    report.assertions.push_back(
        {assertion.text(), outcome.holds, outcome.left, outcome.right});
    all &= outcome.holds;
    if (!outcome.holds)
      complain(Exit::assertion,
               fmt::format("assertion failed: {} (left {}, right {})",
                           escape_name(assertion.text()), value_text(outcome.left),
                           value_text(outcome.right)));
  }
  return all;
}

std::string shown(const ReplayReport& report, const CommonOptions& common) {
  switch (common.output) {
    case Output::json: return replay_json(report);
    case Output::csv: return replay_csv(report);
    default: return replay_text(report, text_style(common, terminal_environment()));
  }
}

OrComplaint<int> replay_verb(const ReplayOptions& options, const CommonOptions& common) {
  if (common.output == Output::jsonl)
    return complaint(Exit::usage, "replay has no jsonl; -o json is one object");
  const Result<Lineup> lineup = line_up(options.lineup, options.settings);
  if (!lineup) return complaint(Exit::usage, lineup.error().text);
  const auto compared = compared_plans(options);
  if (!compared) return std::unexpected(compared.error());
  const auto assertions = parsed_assertions(options, *lineup);
  if (!assertions) return std::unexpected(assertions.error());
  OrComplaint<Recorded> recorded = read(options, *lineup, *compared);
  if (!recorded) return std::unexpected(recorded.error());
  ReplayVerb verb(options, *lineup, *compared, *std::move(recorded));
  OrComplaint<ReplayReport> report = verb.run();
  if (!report) return std::unexpected(report.error());
  if (!options.directory.empty())
    if (const Status drawn = verb.draw(); !drawn) return complaint(drawn.error());
  const bool hold = check_all(verb, *assertions, *report);
  if (const Status written = emit(shown(*report, common), {}); !written)
    return complaint(written.error());
  return hold ? 0 : static_cast<int>(Exit::assertion);
}

// What CLI11 says where it does not understand.
template <class T>
T taken(const char* option, const Result<T>& value) {
  if (!value) throw CLI::ValidationError(fmt::format("{} {}", option, value.error().text));
  return *value;
}

using Options = std::shared_ptr<ReplayOptions>;

void add_input_options(CLI::App& verb, const Options& options) {
  verb.add_option("traces", options->paths.traces, "traces to replay, CSV or CSV.gz")->required();
  verb.add_option("--train", options->paths.training, "traces of earlier runs, to learn from");
  verb.add_option_function<std::string>(
          "--model",
          [options](const std::string& path) {
            options->paths.model = path;
            options->model_named = true;
          },
          "model file [" + std::string(kInstalledModel) + "]");
  verb.add_option("--compat-model", options->paths.compat_model,
                  "model imported from AI4DL, for ai4dl-phase-compat");
}

void add_policy_options(CLI::App& verb, const Options& options) {
  verb.add_option("--policy", options->lineup.policies,
                  "NAME or NAME:KEY=NUMBER,..., several with commas, or all [phase,hold,oracle-max,"
                  "static]")
      ->allow_extra_args(false);
  verb.add_option_function<std::string>(
      "--margin",
      [options](const std::string& text) {
        options->lineup.margins = taken("--margin", parse_margins(text));
      },
      "percent on what policies want, such as 0,5,10 [0]");
  verb.add_option_function<std::string>(
      "--risk",
      [options](const std::string& text) {
        options->settings.risk = taken("--risk", parse_share(text, kLeastRisk, kMostRisk));
      },
      "share of the samples that may want more than they got [0.1%]");
  verb.add_flag("--rails", options->lineup.rails, "ours with the daemon's rails, too");
}

void add_time_options(CLI::App& verb, const Options& options) {
  verb.add_option_function<std::string>(
      "--window",
      [options](const std::string& text) {
        options->settings.window_seconds =
            taken("--window", parse_seconds(text, kLeastWindow, kMostWindow));
      },
      "of the oracles, of policies with a window, and of windows without overrun [10m]");
  verb.add_option_function<std::string>(
      "--step",
      [options](const std::string& text) {
        options->settings.step_seconds =
            taken("--step", parse_seconds(text, kLeastStep, kMostStep));
      },
      "between two decisions [each sample]");
}

void add_loop_options(CLI::App& verb, const Options& options) {
  ClosedLoop& loop = options->settings.loop;
  CLI::Option* const closed =
      verb.add_flag("--closed-loop", loop.enabled, "a guard raises limits, unmet demand waits");
  verb.add_option_function<std::string>(
          "--time-to-raise",
          [&loop](const std::string& text) {
            loop.time_to_raise_seconds =
                taken("--time-to-raise", parse_seconds(text, kLeastRaise, kMostRaise));
          },
          "of the guard, after demand came near the limit [100ms]")
      ->needs(closed);
  verb.add_option_function<std::string>(
          "--guard-threshold",
          [&loop](const std::string& text) {
            loop.guard_threshold =
                taken("--guard-threshold", parse_share(text, kLeastThreshold, kMostThreshold));
          },
          "how near, of the limit [95%]")
      ->needs(closed);
}

void add_outcome_options(CLI::App& verb, const Options& options) {
  verb.add_option("--compare", options->compared,
                  "what A and B cost at the same share of samples over; controls: all without "
                  "phases")
      ->expected(2)
      ->type_name("A B");
  verb.add_option("--assert", options->assertions,
                  "such as 'phase.cpu.samples_over <= 1%'; exit 8 where it does not hold")
      ->allow_extra_args(false);
  verb.add_option("--svg", options->directory, "directory for pictures");
  verb.add_option("--seed", options->bootstrap.seed, "of the 95 % intervals")
      ->capture_default_str();
  verb.add_option("--bootstrap", options->bootstrap.resamples, "resamples; 0: no intervals")
      ->check(CLI::Range(0, kMostResamples))
      ->capture_default_str();
}

}  // namespace

void add_replay_verb(CLI::App& app, const CommonOptions& common, int& exit_code) {
  CLI::App* const verb = app.add_subcommand(
      "replay", "what policies would have saved and cost on recorded executions");
  const auto options = std::make_shared<ReplayOptions>();
  add_input_options(*verb, options);
  add_policy_options(*verb, options);
  add_time_options(*verb, options);
  add_loop_options(*verb, options);
  add_outcome_options(*verb, options);
  verb->callback([options, &common, &exit_code] {
    const OrComplaint<int> outcome = replay_verb(*options, common);
    exit_code = outcome ? *outcome : complain(outcome.error());
  });
}

}  // namespace cgphase
