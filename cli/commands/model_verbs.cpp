// The verbs train and model, which need no daemon.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/crc32.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/commands/model_check.h"
#include "cli/commands/model_windows.h"
#include "cli/commands/verbs.h"
#include "cli/offline.h"
#include "cli/options.h"
#include "cli/trace_input.h"
#include "model/ai4dl.h"
#include "model/phase.h"
#include "model/train/ai4dl_train.h"
#include "model/train/merge.h"
#include "model/train/train.h"

namespace cgphase {
namespace {

constexpr std::size_t kMaxParametersBytes = kMaxModelFileBytes;

// ---- train ----

struct TrainVerbOptions {
  TrainOptions train;
  std::string clusters = std::to_string(TrainOptions{}.clusters), output;
  std::vector<std::string> traces;
  std::vector<std::string> features;  // empty: those of TrainOptions
  bool compat = false, in_order = false;
  std::string initial;
};

Status parse_clusters(TrainVerbOptions& options) {
  if (options.clusters == "auto") {
    options.train.clusters = kAutomaticClusters;
    return {};
  }
  const std::optional<std::uint64_t> count = parse_u64(options.clusters);
  if (!count || *count < 1 || *count > std::uint64_t{kMaxPhases})
    return failure(ErrorKind::invalid, fmt::format("--clusters {}: must be 1..{} or auto",
                                                   escape_name(options.clusters), kMaxPhases));
  options.train.clusters = static_cast<int>(*count);
  return {};
}

// Training as in the release reads all rows several times, so the traces stay in memory.
Result<std::vector<Trace>> read_traces(const std::vector<std::string>& paths,
                                       const TraceOptions& options) {
  std::vector<Trace> traces;
  for (const std::string& path : paths) {
    Result<Trace> trace = read_trace_input(path, options);
    if (!trace) return std::unexpected(trace.error());
    traces.push_back(std::move(*trace));
  }
  return traces;
}

using Progress = std::function<void(const EpochReport&)>;

// Keeps only the feature vectors of the traces in memory.
Result<Model> train_own(const TrainVerbOptions& options, const Progress& progress) {
  DatasetMaker maker(options.train.schema, options.train.step_seconds, options.train.history);
  std::vector<TraceSource> sources;
  for (const std::string& path : options.traces) {
    const Result<TraceSource> source = add_trace(maker, path, {});
    if (!source) return std::unexpected(source.error());
    sources.push_back(*source);
  }
  return train(options.train, maker.finish(), sources, progress);
}

// Describes the phases, one line each.
std::string describe_phases(const Model& model) {
  std::string out =
      fmt::format("{:>5} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "phase", "samples", "cpu mean",
                  "cpu sd", "mem mean", "mem sd", "novelty");
  for (std::size_t i = 0; i < model.phases.size(); ++i) {
    const PhaseSummary& phase = model.phases[i];
    const double count = std::max(phase.count, 1.0);
    out += fmt::format("{:>5} {:>9.0f} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.4f}\n",
                       phase_letter(static_cast<int>(i)), phase.count, phase.cpu_mean_ratio,
                       std::sqrt(phase.cpu_m2 / count), phase.memory_mean_ratio,
                       std::sqrt(phase.memory_m2 / count), phase.novelty_distance);
  }
  return out;
}

std::string describe(const Model& model) {
  const CrbmParameters& crbm = model.crbm;
  std::string out = fmt::format(
      "{} features, step {} s, history {}, {} hidden units, {} phases\n", crbm.n_vis,
      model.step_seconds, crbm.n_his, crbm.n_hid, model.centroids.count);
  if (model.switch_cost > 0) out += fmt::format("switch cost {:.6g}\n", model.switch_cost);
  for (std::size_t i = 0; i < model.schema.entries.size(); ++i)
    out += fmt::format("  {:<24} mean {:.6g}, deviation {:.6g}\n",
                       escape_name(model.schema.entries[i].name), model.scaler.mean[i],
                       model.scaler.scale[i]);
  out += describe_phases(model);
  for (const auto& [key, text] : model.provenance)
    out += fmt::format("{}: {}\n", escape_name(key), escape_name(text));
  return out;
}

// The release has other defaults for the shared options, so only options that were given count.
Result<Model> train_compat(const CLI::App& verb, const TrainVerbOptions& options,
                           const Progress& progress) {
  TraceOptions columns;
  columns.columns = ai4dl_columns();
  const Result<std::vector<Trace>> traces = read_traces(options.traces, columns);
  if (!traces) return std::unexpected(traces.error());
  Ai4dlTraining training;
  const auto given = [&](const char* name) { return verb.count(name) > 0; };
  if (given("--history")) training.history = options.train.history;
  if (given("--hidden")) training.hidden = options.train.hidden;
  if (given("--epochs")) training.epochs = options.train.epochs;
  if (given("--learning-rate")) training.learning_rate = options.train.learning_rate;
  if (options.train.clusters == kAutomaticClusters)
    return failure(
        ErrorKind::invalid,
        "--clusters auto: not available with --compat; give a number or leave out --compat");
  if (given("--clusters")) training.clusters = options.train.clusters;
  training.seed = options.train.seed;
  training.shuffle = !options.in_order;
  if (!options.initial.empty()) {
    const Result<std::string> text = read_file(options.initial, kMaxParametersBytes);
    if (!text) return std::unexpected(text.error());
    Result<CrbmParameters> weights = parse_ai4dl_weights(*text, options.initial);
    if (!weights) return std::unexpected(weights.error());
    training.initial = *std::move(weights);
  }
  return train_ai4dl(training, *traces, progress);
}

double seconds_since(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

// The remaining time assumes all epochs; training usually ends earlier.
std::string progress_text(const EpochReport& report, int most, double seconds) {
  const double rate = seconds > 0 ? report.epoch / seconds : 0;
  std::string text = fmt::format("epoch {} of at most {}  error {:.5f}  held out {:.5f}",
                                 report.epoch, most, report.error, report.held_out_error);
  if (rate > 0)
    text += fmt::format("  {:.0f} epochs/s  {} at most", rate,
                        human_duration((most - report.epoch) / rate));
  return text;
}

Status train_verb(const CLI::App& verb, TrainVerbOptions& options) {
  if (Status status = parse_clusters(options); !status) return status;
  if (!options.features.empty()) {
    Result<FeatureSchema> schema = named_schema(options.features);
    if (!schema) return failure(ErrorKind::invalid, "--features: " + schema.error().text);
    options.train.schema = *std::move(schema);
  }
  const bool tty = ::isatty(STDERR_FILENO) == 1;
  const auto begun = std::chrono::steady_clock::now();
  const int most = options.compat && verb.count("--epochs") == 0 ? Ai4dlTraining{}.epochs
                                                                 : options.train.epochs;
  const auto progress = [&](const EpochReport& report) {
    if (tty) fmt::print(stderr, "\r{}\x1b[K", progress_text(report, most, seconds_since(begun)));
  };
  const Result<Model> model =
      options.compat ? train_compat(verb, options, progress) : train_own(options, progress);
  if (tty) fmt::print(stderr, "\r\x1b[K");
  if (!model) return std::unexpected(model.error());
  if (Status status = emit(serialize_model(*model), options.output); !status) return status;
  return emit_beside(describe(*model), options.output);
}

}  // namespace

void add_train_verb(CLI::App& app, const CommonOptions&, int& exit_code) {
  CLI::App* verb = app.add_subcommand("train", "Train a model on traces");
  const auto options = std::make_shared<TrainVerbOptions>();
  TrainOptions& train = options->train;
  verb->add_option("-o,--output", options->output, "Model file to write")
      ->type_name("FILE")
      ->required();
  verb->add_option("traces", options->traces, "Traces, CSV or CSV.gz")
      ->type_name("TRACE")
      ->required();
  verb->add_option("--clusters", options->clusters, "Number of phases, or auto")
      ->type_name("N|auto")
      ->capture_default_str();
  verb->add_option("--hidden", train.hidden, "Number of hidden units")->capture_default_str();
  verb->add_option("--history", train.history, "Steps of history")->capture_default_str();
  verb->add_option("--epochs", train.epochs, "Most epochs; 0 leaves the CRBM untrained")
      ->capture_default_str();
  verb->add_option("--learning-rate", train.learning_rate, "Learning rate of the first epoch")
      ->capture_default_str();
  verb->add_option(
          "--stickiness", train.stickiness,
          "Cost of a change of phase, in mean squared distances to the nearest centroid; 0: none")
      ->capture_default_str();
  verb->add_option("--step", train.step_seconds, "Seconds per model step")->capture_default_str();
  verb->add_option("--momentum", train.momentum, "Momentum of the CRBM's training")
      ->capture_default_str();
  verb->add_option("--batch", train.batch, "Windows per training step of the CRBM")
      ->capture_default_str();
  verb->add_option(
          "--features", options->features,
          "Features of the model [all but the optional ones, the two ratios as logarithms]")
      ->type_name("NAME")
      ->delimiter(',');
  verb->add_option("--seed", train.seed, "Seed; the same seed and traces give the same model")
      ->capture_default_str();
  CLI::Option* compat =
      verb->add_flag("--compat", options->compat,
                     "Train as the released AI4DL does (its eight columns, no early stop)");
  for (const char* ours : {"--features", "--step", "--stickiness", "--momentum", "--batch"})
    verb->get_option(ours)->excludes(compat);
  verb->add_option("--initial", options->initial, "With --compat: initial weights as JSON")
      ->type_name("FILE")
      ->needs(compat);
  verb->add_flag("--in-order", options->in_order, "With --compat: use windows in file order")
      ->needs(compat);
  verb->callback([verb, options, &exit_code] {
    exit_code = finish(train_verb(*verb, *options));
  });
}

namespace {

// ---- model show | check | import | merge ----

Status show(const std::string& path) {
  const Result<Model> model = load_model(path);
  if (!model) return std::unexpected(model.error());
  return emit(describe(*model), {});
}

Status check(const ModelCheckOptions& options) {
  const Result<ModelCheckReport> report = check_model_file(options);
  if (!report) return std::unexpected(report.error());
  if (Status status = emit(report->text, {}); !status) return status;
  if (report->violations == 0) return {};
  return failure(ErrorKind::io, fmt::format("{}: {} certified phases differ from the double "
                                            "engine's: this is a defect of cgphase, report it",
                                            escape_name(options.model), report->violations));
}

Status import_parameters(const std::string& from, const std::string& to, bool expanded) {
  const Result<std::string> text = read_file(from, kMaxParametersBytes);
  if (!text) return std::unexpected(text.error());
  const Result<Model> model = import_ai4dl(*text, from, expanded);
  if (!model) return std::unexpected(model.error());
  return emit(serialize_model(*model), to);
}

struct MergeOptions {
  std::vector<std::string> models, traces;
  std::string output;
  bool only_traces = false;
};

// Lists what was added up, for the provenance. Names that do not fit are counted.
std::string merged_text(const std::vector<std::string>& parts) {
  std::string text = "cgphase model merge: ";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string rest = fmt::format("and {} more", parts.size() - i);
    if (text.size() + parts[i].size() + rest.size() + 2 > kMaxTextBytes) return text + rest;
    text += parts[i] + (i + 1 < parts.size() ? ", " : "");
  }
  return text;
}

std::string part_text(const std::string& path, std::uint32_t crc) {
  return fmt::format("{} crc32c {:08x}",
                     escape_name(std::filesystem::path(path).filename().string()), crc);
}

Status merge(const MergeOptions& options) {
  if (options.models.size() == 1 && options.traces.empty())
    return failure(ErrorKind::invalid, fmt::format("{}: nothing to add to it: name another model "
                                                   "of the same phases, or --traces",
                                                   escape_name(options.models.front())));
  std::vector<std::string> parts;
  std::optional<Model> merged;
  for (const std::string& path : options.models) {
    Result<Model> model = load_model(path);
    if (!model) return std::unexpected(model.error());
    parts.push_back(part_text(path, crc32c(serialize_model(*model))));
    if (!merged) {
      merged = *std::move(model);
      continue;
    }
    if (Status same = check_same_phases(*merged, options.models.front(), *model, path); !same)
      return same;
    add_statistics(*merged, model->phases);
  }
  if (options.only_traces) std::ranges::fill(merged->phases, PhaseSummary{});
  if (!options.traces.empty()) {
    const Result<ModelWindows> windows = model_windows(*merged, options.traces);
    if (!windows) return std::unexpected(windows.error());
    add_statistics(*merged, count_phases(*merged, windows->data));
    for (const TraceSource& source : windows->sources)
      parts.push_back(part_text(source.path, source.crc));
  }
  merged->provenance["statistics"] = merged_text(parts);
  if (Status sound = check_model(*merged, "merged model"); !sound) return sound;
  if (Status saved = emit(serialize_model(*merged), options.output); !saved) return saved;
  return emit_beside(describe_phases(*merged), options.output);
}

void add_merge(CLI::App& models, int& exit_code) {
  CLI::App* verb = models.add_subcommand("merge", "Add up statistics of models of several hosts");
  const auto options = std::make_shared<MergeOptions>();
  verb->add_option("models", options->models, "Model files of the same phases")
      ->type_name("FILE")
      ->required();
  verb->add_option("-o,--output", options->output, "Model file to write")
      ->type_name("FILE")
      ->required();
  CLI::Option* traces =
      verb->add_option("--traces", options->traces, "Traces, CSV or CSV.gz, to count as well")
          ->type_name("TRACE");
  verb->add_flag("--only-traces", options->only_traces, "Forget what the models counted before")
      ->needs(traces);
  verb->callback([options, &exit_code] { exit_code = finish(merge(*options)); });
}

}  // namespace

void add_model_verb(CLI::App& app, const CommonOptions&, int& exit_code) {
  CLI::App* verb = app.add_subcommand("model", "Show, check, install or convert models");
  verb->require_subcommand(1);
  struct Paths {
    std::string file = default_model_path(), output;
    bool expanded = false;
  };
  const auto paths = std::make_shared<Paths>();
  CLI::App* showing = verb->add_subcommand("show", "Show the content of a model");
  showing->add_option("file", paths->file, kModelHelp)->type_name("FILE");
  showing->callback([paths, &exit_code] { exit_code = finish(show(paths->file)); });
  CLI::App* checking =
      verb->add_subcommand("check", "Validate a model, and its fixed-point arithmetic on traces");
  const auto checked = std::make_shared<ModelCheckOptions>();
  checked->model = default_model_path();
  checking->add_option("file", checked->model, kModelHelp)->type_name("FILE");
  checking->add_option("traces", checked->traces, "Traces, CSV or CSV.gz")->type_name("TRACE");
  checking->add_flag("--json", checked->as_json, "Print JSON instead of text");
  checking->callback(
      [checked, &exit_code] { exit_code = finish(check(*checked)); });
  CLI::App* importing =
      verb->add_subcommand("import", "Convert AI4DL's parameters to a model file");
  importing->add_option("file", paths->file, "AI4DL's parameters as JSON")
      ->type_name("FILE")
      ->required();
  importing->add_option("-o,--output", paths->output, "Model file to write")
      ->type_name("FILE")
      ->required();
  importing->add_flag("--expanded", paths->expanded,
                      "Include the parts of the expanded phase (kmeans_sub)");
  importing->callback([paths, &exit_code] {
    exit_code = finish(import_parameters(paths->file, paths->output, paths->expanded));
  });
  add_merge(*verb, exit_code);
}

}  // namespace cgphase
