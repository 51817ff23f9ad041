#include "cli/model_verbs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/parse.h"
#include "base/text.h"
#include "model/ai4dl.h"
#include "model/crbm_fixed.h"
#include "model/feature_schema.h"
#include "model/text_lines.h"
#include "model/trace_features.h"
#include "model/trace_phases.h"
#include "model/train/train.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr int kExitFailure = 1, kExitDenied = 5, kExitInput = 6;
constexpr std::size_t kMaxParametersBytes = kMaxModelFileBytes;

int exit_code_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::invalid:
    case ErrorKind::not_found: return kExitInput;
    case ErrorKind::denied: return kExitDenied;
    default: return kExitFailure;
  }
}

int finish(const char* verb, const Status& status) {
  if (status) return 0;
  fmt::print(stderr, "cgphase {}: {}\n", verb, status.error().text);
  return exit_code_of(status.error());
}

// To the file, or to stdout where none is named.
Status emit(const std::string& text, const std::string& path) {
  if (!path.empty()) return replace_file(path, text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return failure(ErrorKind::io, "standard output cannot be written");
  return {};
}

// ---- predict ----

struct PredictOptions {
  std::string model = kInstalledModel, trace, output;
  bool compat = false, as_json = false;
};

json phases_json(const Execution& execution, const std::vector<Phase>& phases) {
  json indices = json::array(), margins = json::array();
  for (const Phase& phase : phases) {
    indices.push_back(phase.known() ? json(phase.index) : json());
    margins.push_back(phase.state == PhaseState::not_enough_history ? json() : json(phase.margin));
  }
  return {{"id", escape_name(execution.id)}, {"phases", indices}, {"margins", margins}};
}

void append_csv(const Execution& execution, const std::vector<Phase>& phases, std::string& out) {
  const std::string id = csv_field(escape_name(execution.id));
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const std::chrono::duration<double> since_epoch =
        execution.rows[i].wall_time.time_since_epoch();
    out += fmt::format("{:.3f},{},", since_epoch.count(), id);
    if (phases[i].known()) out += fmt::format("{}", phases[i].index);
    out += fmt::format(",{},", to_string(phases[i].state));
    if (phases[i].state != PhaseState::not_enough_history)
      out += fmt::format("{},{}", phases[i].distance, phases[i].margin);
    else
      out += ',';
    out += '\n';
  }
}

Status check_compat(const Model& model, const std::string& path) {
  for (const FeatureSchema::Entry& entry : model.schema.entries)
    if (entry.feature != Feature::column)
      return failure(ErrorKind::invalid,
                     path + ": --compat needs a model imported from AI4DL (cgphase model import)");
  return {};
}

Status predict(const PredictOptions& options) {
  Result<Model> model = load_model(options.model);
  if (!model) return std::unexpected(model.error());
  if (options.compat)
    if (Status status = check_compat(*model, options.model); !status) return status;
  TraceOptions columns;
  columns.columns = schema_columns(model->schema);
  const Result<Trace> trace = read_trace(options.trace, columns);
  if (!trace) return std::unexpected(trace.error());
  const auto engine = PhaseEngine::create(std::move(*model));
  if (!engine) return std::unexpected(engine.error());

  json executions = json::array();
  std::string csv = "timestamp,pod.id,phase,state,distance,margin\n";
  for (const Execution& execution : trace->executions) {
    const std::vector<Phase> phases = options.compat ? ai4dl_phases((*engine)->model(), execution)
                                                     : tracked_phases(*engine, execution);
    if (options.as_json) executions.push_back(phases_json(execution, phases));
    else append_csv(execution, phases, csv);
  }
  if (!options.as_json) return emit(csv, options.output);
  return emit(json{{"schema", 1}, {"executions", executions}}.dump() + "\n", options.output);
}

void add_predict(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("predict", "phase per sample of a trace, as CSV or JSON");
  const auto options = std::make_shared<PredictOptions>();
  verb->add_option("--model", options->model, "model file")->capture_default_str();
  verb->add_option("trace", options->trace, "trace, CSV or CSV.gz")->required();
  verb->add_option("--output", options->output, "file to write instead of standard output");
  verb->add_option_function<std::string>(
          "-o", [options](const std::string& form) { options->as_json = form == "json"; },
          "csv or json")
      ->check(CLI::IsMember({"csv", "json"}));
  verb->add_flag("--json", options->as_json, "JSON instead of CSV");
  verb->add_flag("--compat", options->compat, "reproduce AI4DL's Predict (imported models)");
  verb->callback([options, &exit_code] { exit_code = finish("predict", predict(*options)); });
}

// ---- train ----

struct TrainVerbOptions {
  TrainOptions train;
  std::string clusters = "5", output;
  std::vector<std::string> traces;
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

Result<std::vector<Trace>> read_traces(const std::vector<std::string>& paths) {
  std::vector<Trace> traces;
  for (const std::string& path : paths) {
    Result<Trace> trace = read_trace(path);
    if (!trace) return std::unexpected(trace.error());
    traces.push_back(std::move(*trace));
  }
  return traces;
}

// What a phase looks like, one line each.
std::string describe_phases(const Model& model) {
  std::string out =
      fmt::format("{:>5} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "phase", "samples", "cpu mean",
                  "cpu sd", "mem mean", "mem sd", "novelty");
  for (std::size_t i = 0; i < model.phases.size(); ++i) {
    const PhaseSummary& phase = model.phases[i];
    const double count = std::max(phase.count, 1.0);
    out += fmt::format("{:>5} {:>9.0f} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.4f}\n", i,
                       phase.count, phase.cpu_mean_ratio, std::sqrt(phase.cpu_m2 / count),
                       phase.memory_mean_ratio, std::sqrt(phase.memory_m2 / count),
                       phase.novelty_distance);
  }
  return out;
}

std::string describe(const Model& model) {
  const CrbmParameters& crbm = model.crbm;
  std::string out = fmt::format(
      "{} features, step {} s, history {}, {} hidden units, {} phases\n", crbm.n_vis,
      model.step_seconds, crbm.n_his, crbm.n_hid, model.centroids.count);
  for (std::size_t i = 0; i < model.schema.entries.size(); ++i)
    out += fmt::format("  {:<24} mean {:.6g}, deviation {:.6g}\n",
                       escape_name(model.schema.entries[i].name), model.scaler.mean[i],
                       model.scaler.scale[i]);
  out += describe_phases(model);
  for (const auto& [key, text] : model.provenance)
    out += fmt::format("{}: {}\n", escape_name(key), escape_name(text));
  return out;
}

Status train_verb(TrainVerbOptions& options) {
  if (Status status = parse_clusters(options); !status) return status;
  const Result<std::vector<Trace>> traces = read_traces(options.traces);
  if (!traces) return std::unexpected(traces.error());
  const bool tty = ::isatty(STDERR_FILENO) == 1;
  const auto progress = [tty](const EpochReport& report) {
    if (tty)
      fmt::print(stderr, "\repoch {:>5}  error {:.5f}  held out {:.5f} ", report.epoch,
                 report.error, report.held_out_error);
  };
  const Result<Model> model = train(options.train, *traces, progress);
  if (tty) fmt::print(stderr, "\r\x1b[K");
  if (!model) return std::unexpected(model.error());
  if (Status status = save_model(*model, options.output); !status) return status;
  return emit(describe(*model), {});
}

void add_train(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("train", "make a model from traces");
  const auto options = std::make_shared<TrainVerbOptions>();
  TrainOptions& train = options->train;
  verb->add_option("-o,--output", options->output, "model file to write")->required();
  verb->add_option("traces", options->traces, "traces, CSV or CSV.gz")->required();
  verb->add_option("--clusters", options->clusters, "number of phases, or auto")
      ->capture_default_str();
  verb->add_option("--hidden", train.hidden, "hidden units")->capture_default_str();
  verb->add_option("--history", train.history, "steps of history")->capture_default_str();
  verb->add_option("--epochs", train.epochs, "most epochs; 0 leaves the CRBM untrained")
      ->capture_default_str();
  verb->add_option("--learning-rate", train.learning_rate, "of the first epoch")
      ->capture_default_str();
  verb->add_option("--step", train.step_seconds, "seconds per model step")->capture_default_str();
  verb->add_option("--seed", train.seed, "same seed and traces, same model")
      ->capture_default_str();
  verb->callback([options, &exit_code] { exit_code = finish("train", train_verb(*options)); });
}

// ---- model show | check | import ----

Status show(const std::string& path) {
  const Result<Model> model = load_model(path);
  if (!model) return std::unexpected(model.error());
  return emit(describe(*model), {});
}

Status check(const std::string& path) {
  const Result<Model> model = load_model(path);
  if (!model) return std::unexpected(model.error());
  return emit(fmt::format("{}: ok\n", path), {});
}

Status import_parameters(const std::string& from, const std::string& to) {
  const Result<std::string> text = read_file(from, kMaxParametersBytes);
  if (!text) return std::unexpected(text.error());
  const Result<Model> model = import_ai4dl(*text, from);
  if (!model) return std::unexpected(model.error());
  return save_model(*model, to);
}

void add_model(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand("model", "look at, check and import model files");
  verb->require_subcommand(1);
  struct Paths {
    std::string file = kInstalledModel, output;
  };
  const auto paths = std::make_shared<Paths>();
  CLI::App* showing = verb->add_subcommand("show", "what a model holds");
  showing->add_option("file", paths->file, "model file")->capture_default_str();
  showing->callback([paths, &exit_code] { exit_code = finish("model show", show(paths->file)); });
  CLI::App* checking = verb->add_subcommand("check", "read a model as the daemon would");
  checking->add_option("file", paths->file, "model file")->capture_default_str();
  checking->callback(
      [paths, &exit_code] { exit_code = finish("model check", check(paths->file)); });
  CLI::App* importing = verb->add_subcommand("import", "make a model file of AI4DL's parameters");
  importing->add_option("file", paths->file, "AI4DL's parameters as JSON")->required();
  importing->add_option("-o,--output", paths->output, "model file to write")->required();
  importing->callback([paths, &exit_code] {
    exit_code = finish("model import", import_parameters(paths->file, paths->output));
  });
}

}  // namespace

void add_model_verbs(CLI::App& app, int& exit_code) {
  add_predict(app, exit_code);
  add_train(app, exit_code);
  add_model(app, exit_code);
}

}  // namespace cgphase
