// `cgphase replay`: shows what policies would have done on recorded executions
// (docs/internals/lab.md).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/config/config.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/commands/history_verbs.h"
#include "cli/commands/verbs.h"
#include "cli/host_history.h"
#include "cli/offline.h"
#include "cli/options.h"
#include "cli/output/print.h"
#include "cli/output/time_text.h"
#include "lab/replay/session.h"
#include "lab/replay/words.h"

namespace cgphase {
namespace {

constexpr double kLeastWindow = 1, kMostWindow = 7 * 86'400;
constexpr double kLeastStep = 0.001, kMostStep = 86'400;
constexpr double kLeastRaise = 0.001, kMostRaise = 3600;
constexpr double kLeastThreshold = 0.1, kMostThreshold = 1;

std::string value_text(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "no value";
}

// Returns true if all assertions hold; prints one line for each that does not.
bool all_hold(const std::vector<AssertionReport>& assertions) {
  bool all = true;
  for (const AssertionReport& assertion : assertions) {
    all &= assertion.holds;
    if (!assertion.holds)
      complain(Exit::assertion, fmt::format("assertion failed: {} (left {}, right {})",
                                            escape_name(assertion.text),
                                            value_text(assertion.left),
                                            value_text(assertion.right)));
  }
  return all;
}

std::string shown(const ReplayReport& report, const CommonOptions& common) {
  switch (common.output) {
    case Output::json: return replay_json(report);
    case Output::jsonl: return replay_jsonl(report);
    case Output::csv: return replay_csv(report, common.legend);
    default: return replay_text(report, text_style(common, terminal_environment()));
  }
}

// Everything is replayed before anything is printed or drawn.
OrComplaint<int> replay_verb(const ReplayRequest& request, const CommonOptions& common) {
  if (common.output == Output::openmetrics)
    return complaint(Exit::usage, "-o openmetrics: replay has table, wide, json, jsonl, csv");
  Result<ReplaySession> session = ReplaySession::create(request);
  if (!session) return complaint(Exit::usage, session.error().text);
  const Result<ReplayReport> report = session->run();
  if (!report) return complaint(report.error());
  if (!request.directory.empty()) {
    const auto earlier = session->draw();
    if (!earlier) return complaint(earlier.error());
    if (!earlier->empty())
      complain(Exit::ok, fmt::format("replay: cannot remove earlier pictures from {}: {}",
                                     request.directory, fmt::join(*earlier, ", ")));
  }
  if (const std::string left_out = session->left_out(); !left_out.empty())
    complain(Exit::ok, "replay leaves out: " + left_out);
  if (const std::string knows = session->model_knows(); !knows.empty())
    complain(Exit::ok, "replay: " + knows);
  if (const std::string by_use = measured_by_use(*report);
      !by_use.empty() && common.output != Output::json && common.output != Output::jsonl)
    complain(Exit::ok, "replay: " + by_use);
  const bool hold = all_hold(report->assertions);
  if (const Status written = emit(shown(*report, common), {}); !written)
    return complaint(written.error());
  return hold ? 0 : static_cast<int>(Exit::assertion);
}

// Throws the error that CLI11 reports for an invalid argument.
template <class T>
T taken(const char* option, const Result<T>& value) {
  if (!value) throw CLI::ValidationError(fmt::format("{} {}", option, value.error().text));
  return *value;
}

struct ReplayWords : ReplayRequest {
  bool host = false;
  HostHistory history;
  std::string since, until;
  std::string config;  // the daemon's configuration; empty: the default one with --host, else none
  std::optional<double> risk;
  std::optional<CpuLever> cpu_lever;
};
using Options = std::shared_ptr<ReplayWords>;

std::optional<Complaint> take_times(ReplayWords& words, const CommonOptions& common) {
  const auto take = [&](const std::string& text, std::optional<WallTime>& time)
      -> std::optional<Complaint> {
    if (text.empty()) return std::nullopt;
    const Result<WallTime> parsed = parse_time(text, SystemClock().wall_now(), common.utc);
    if (!parsed) return Complaint{Exit::usage, parsed.error().text};
    time = *parsed;
    return std::nullopt;
  };
  if (auto wrong = take(words.since, words.history.since)) return wrong;
  return take(words.until, words.history.until);
}

// Takes the numbers of the daemon's configuration. Options of the command line count more.
Status take_config(ReplayWords& words) {
  ReplaySettings& settings = words.settings;
  if (words.host || !words.config.empty()) {
    ConfigSource source;
    if ((source.must_exist = !words.config.empty())) source.file = words.config;
    const Result<Config> config = load_config(source);
    if (!config) return std::unexpected(config.error());
    for (const std::string& warning : config->warnings) complain(Exit::ok, warning);
    settings.rules = config->safety;
    settings.risk = config->risk;
    settings.cpu_lever = config->enforce.cpu;
  }
  settings.risk = words.risk.value_or(settings.risk);
  settings.cpu_lever = words.cpu_lever.value_or(settings.cpu_lever);
  return {};
}

// Reads the traces of the command line and, if requested, this host's history.
OrComplaint<int> replay_words(ReplayWords words, const CommonOptions& common) {
  words.host |= !words.history.containers.empty() || !words.history.state_dir.empty();
  if (!words.host && words.paths.traces.empty())
    return complaint(Exit::usage, "replay: name traces, or use --host for this host's history");
  if (const Status taken = take_config(words); !taken) return complaint(taken.error());
  std::optional<HostTrace> recorded;
  if (!words.host && !(words.since.empty() && words.until.empty()))
    return complaint(Exit::usage, "--since and --until are for --host, not for traces");
  if (words.host) {
    if (auto wrong = take_times(words, common)) return std::unexpected(*wrong);
    words.history.socket = common.socket;
    words.history.incomplete = complain_incomplete;
    auto trace = host_trace(words.history);
    if (!trace) return std::unexpected(trace.error());
    recorded = *std::move(trace);
    words.paths.traces.push_back(recorded->path);
  }
  return replay_verb(words, common);
}

void add_input_options(CLI::App& verb, const Options& options) {
  verb.add_option("traces", options->paths.traces, "Traces to replay, CSV or CSV.gz")
      ->type_name("TRACE");
  verb.add_flag("--host", options->host, "Replay this host's history, of all containers");
  verb.add_option("--container", options->history.containers,
                  "Only this container: name, id (4 or more characters) or cgroup path")
      ->type_name("CONTAINER")
      ->allow_extra_args(false);
  verb.add_option("--from,--since", options->since,
                  "Start of the history (-10m, \"3m ago\", ISO, epoch) [oldest]")
      ->type_name("TIME");
  verb.add_option("--until", options->until, "End of the history [now]")->type_name("TIME");
  verb.add_option("--state-dir", options->history.state_dir,
                  "Read the files of a daemon that does not run")
      ->type_name("DIR");
  verb.add_option("--train", options->paths.training, "Traces of earlier runs to learn from")
      ->type_name("TRACE");
  verb.add_option_function<std::string>(
          "--model",
          [options](const std::string& path) {
            options->paths.model = path;
            options->model_named = true;
          },
          kModelHelp)
      ->type_name("FILE");
  verb.add_option("--compat-model", options->paths.compat_model,
                  "Model imported from AI4DL, for ai4dl-phase-compat")
      ->type_name("FILE");
}

void add_policy_options(CLI::App& verb, const Options& options) {
  verb.add_option("--policy", options->lineup.policies,
                  "NAME or NAME:KEY=NUMBER,..., several with commas, or all [phase,hold,oracle-max,"
                  "static]")
      ->type_name("POLICY")
      ->allow_extra_args(false);
  verb.add_option_function<std::string>(
          "--margin",
          [options](const std::string& text) {
            options->lineup.margins = taken("--margin", parse_margins(text));
          },
          "Margins on the policies' limits in percent, such as 0,5,10 [0]")
      ->type_name("PERCENT");
  verb.add_option_function<std::string>(
          "--risk",
          [options](const std::string& text) {
            options->risk = taken("--risk", parse_share(text, kLeastRisk, kMostRisk));
          },
          "Share of samples that may be over the limit [0.1%, or that of --config]")
      ->type_name("SHARE");
  verb.add_option_function<std::string>(
          "--enforce-cpu",
          [options](const std::string& text) {
            const auto lever = parse_cpu_lever(text);
            if (!lever) throw CLI::ValidationError("--enforce-cpu: weight, quota or both");
            options->cpu_lever = *lever;
          },
          "What the safety rules change of CPU, as the key enforce.cpu [weight: no quota]")
      ->type_name("LEVER");
  CLI::Option* const rails =
      verb.add_flag("--rails", options->lineup.rails,
                    "Replay ours with the daemon's safety rules, too: the default if possible");
  verb.add_option("--config", options->config,
                  "The daemon's configuration, for risk, safety rules and enforce.cpu "
                  "[with --host: /etc/cgphase/cgphase.toml]")
      ->type_name("FILE");
  verb.add_flag("--bare", options->lineup.bare,
                "Replay policies alone, without the daemon's safety rules")
      ->excludes(rails);
}

void add_time_options(CLI::App& verb, const Options& options) {
  verb.add_option_function<std::string>(
          "--window",
          [options](const std::string& text) {
            options->settings.window_seconds =
                taken("--window", parse_seconds(text, kLeastWindow, kMostWindow));
          },
          "Window of the oracles, of policies with a window, and of CLEAN [10m]")
      ->type_name("DURATION");
  verb.add_option_function<std::string>(
          "--step",
          [options](const std::string& text) {
            options->settings.step_seconds =
                taken("--step", parse_seconds(text, kLeastStep, kMostStep));
          },
          "Time between two decisions [each sample]")
      ->type_name("DURATION");
}

void add_loop_options(CLI::App& verb, const Options& options) {
  ClosedLoop& loop = options->settings.loop;
  CLI::Option* const closed = verb.add_flag("--closed-loop", loop.enabled,
                                            "Raise limits near the demand; unmet demand waits");
  verb.add_option_function<std::string>(
          "--time-to-raise",
          [&loop](const std::string& text) {
            loop.time_to_raise_seconds =
                taken("--time-to-raise", parse_seconds(text, kLeastRaise, kMostRaise));
          },
          "Time until a limit is raised after demand comes near it [100ms]")
      ->type_name("DURATION")
      ->needs(closed);
  verb.add_option_function<std::string>(
          "--guard-threshold",
          [&loop, &lineup = options->lineup](const std::string& text) {
            lineup.threshold_given = true;
            loop.guard_threshold =
                taken("--guard-threshold", parse_share(text, kLeastThreshold, kMostThreshold));
          },
          "Share of the limit that counts as near [95%]")
      ->type_name("PERCENT")
      ->needs(closed);
}

void add_outcome_options(CLI::App& verb, const Options& options) {
  verb.add_option("--compare", options->compared,
                  "Cost of A and B at the same share of samples over; controls: all policies "
                  "without phases")
      ->expected(2)
      ->type_name("A B");
  verb.add_option("--assert", options->assertions,
                  "Claim such as 'phase.cpu.samples_over <= 1%'; exit 8 if it does not hold")
      ->type_name("CLAIM")
      ->allow_extra_args(false);
  verb.add_option("--svg", options->directory, "Directory for pictures")->type_name("DIR");
  verb.add_option("--seed", options->bootstrap.seed, "Seed of the 95 % intervals")
      ->capture_default_str();
  verb.add_option("--bootstrap", options->bootstrap.resamples,
                  "Resamples for 95 % intervals; 0: no intervals")
      ->check(CLI::Range(0, kMostResamples))
      ->capture_default_str();
}

}  // namespace

void add_replay_verb(CLI::App& app, const CommonOptions& common, int& exit_code) {
  CLI::App* const verb = app.add_subcommand(
      "replay", "Show what policies would have saved and cost on recorded executions");
  const auto options = std::make_shared<ReplayWords>();
  options->paths.model = default_model_path();
  add_input_options(*verb, options);
  add_policy_options(*verb, options);
  add_time_options(*verb, options);
  add_loop_options(*verb, options);
  add_outcome_options(*verb, options);
  verb->callback([options, &common, &exit_code] {
    const OrComplaint<int> outcome = replay_words(*options, common);
    exit_code = outcome ? *outcome : complain(outcome.error());
  });
}

}  // namespace cgphase
