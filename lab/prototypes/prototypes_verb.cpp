// prototypes: finds common patterns in the phase sequences of many executions. Needs no daemon.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/parse.h"
#include "base/text.h"
#include "cli/commands/verbs.h"
#include "cli/offline.h"
#include "cli/options.h"
#include "cli/trace_input.h"
#include "lab/prototypes/prototypes_render.h"
#include "model/phase_sequence_reader.h"
#include "model/phase_tracker.h"
#include "model/trace_features.h"
#include "model/trace_phases.h"
#include "traces/text_lines.h"

namespace cgphase {
namespace {

enum class ReportForm : std::uint8_t { text, json, dot, svg };

const std::map<std::string, ReportForm> kReportForms = {
    {"text", ReportForm::text}, {"json", ReportForm::json}, {"dot", ReportForm::dot},
    {"svg", ReportForm::svg}};

struct PrototypesOptions {
  std::string model = default_model_path(), output;
  std::vector<std::string> files;
  bool labelled = false, legend = true;
  double cover = 0.9, min_share = 0.01;
  LengthBins bins;
  ReportForm form = ReportForm::text;
  Drawing drawing = Drawing::tree;
};

// Keeps only the runs of phases of a trace in memory.
Status track(const std::shared_ptr<const PhaseEngine>& engine, const std::string& path,
             PhaseSequences& sequences) {
  struct Tracked {
    PhaseFollower follower;
    PhaseSequence sequence;
  };
  std::vector<Tracked> tracked;
  Result<TraceReader> reader = TraceReader::open(
      path, {.columns = schema_columns(engine->model().schema)});
  if (!reader) return std::unexpected(reader.error());
  const Status read = read_trace_input(*reader, [&](const TraceRow& row) -> Status {
    if (reader->index() == tracked.size())
      tracked.push_back({PhaseFollower(engine), {reader->execution().id, {}}});
    Tracked& execution = tracked[reader->index()];
    const Phase phase = execution.follower.add(reader->execution(), row);
    if (execution.follower.stepped()) execution.sequence.add(phase);
    return {};
  });
  if (!read) return read;
  for (Tracked& execution : tracked)
    if (Status status = sequences.add(std::move(execution.sequence), path); !status)
      return status;
  return {};
}

// Fills `sequences` and returns the step in seconds.
Result<std::optional<double>> gather(const PrototypesOptions& options, PhaseSequences& sequences) {
  if (options.labelled) {
    for (const std::string& path : options.files)
      if (Status status = read_phase_sequences(path, sequences); !status)
        return std::unexpected(status.error());
    return std::optional<double>{};
  }
  Result<Model> model = load_model(options.model);
  if (!model) return std::unexpected(model.error());
  const auto engine = PhaseEngine::create(std::move(*model));
  if (!engine) return std::unexpected(engine.error());
  for (const std::string& path : options.files)
    if (Status status = track(*engine, path, sequences); !status)
      return std::unexpected(status.error());
  return std::optional<double>{(*engine)->model().step_seconds};
}

std::string render(const PrototypesReport& report, const PrototypesOptions& options) {
  switch (options.form) {
    case ReportForm::json: return prototypes_json(report);
    case ReportForm::dot: return prototypes_dot(report, options.drawing);
    case ReportForm::svg: return prototypes_svg(report, options.drawing);
    case ReportForm::text: break;
  }
  return prototypes_text(report, options.legend);
}

Status prototypes(const PrototypesOptions& options) {
  PhaseSequences sequences;
  const Result<std::optional<double>> step_seconds = gather(options, sequences);
  if (!step_seconds) return std::unexpected(step_seconds.error());
  const std::vector<PhaseSequence>& all = sequences.with_phases();
  if (all.empty())
    return failure(ErrorKind::invalid,
                   options.files.front() + ": no execution has a phase" +
                       (options.labelled ? "" : "; they must be longer than the model's history"));
  PrototypesReport report;
  report.bins = options.bins;
  report.cover = options.cover;
  report.min_share = options.min_share;
  report.step_seconds = *step_seconds;
  report.without_phase_count = sequences.without_phase_count();
  report.prototypes = find_prototypes(all, options.bins, options.cover);
  report.tree = phase_tree(all, options.bins, options.min_share);
  report.chain = phase_chain(all);
  return emit(render(report, options), options.output);
}

double take_share(const char* option, const std::string& text, double least) {
  const std::optional<double> share = parse_double(text);
  if (!share || *share < least || *share > 1)
    throw CLI::ValidationError(fmt::format("{} {}: must be a share from {} to 1", option,
                                           escape_name(text), least));
  return *share;
}

LengthBins take_bins(const std::string& text) {
  std::vector<std::string> words;
  split_csv(text, words);
  std::vector<std::uint64_t> bounds;
  for (const std::string& word : words) {
    const std::optional<std::uint64_t> bound = parse_u64(word);
    if (!bound)
      throw CLI::ValidationError("--bins " + escape_name(text) +
                                 ": must be rising lengths, such as 1,10,100");
    bounds.push_back(*bound);
  }
  Result<LengthBins> bins = LengthBins::create(std::move(bounds));
  if (!bins) throw CLI::ValidationError("--bins " + escape_name(text) + ": " + bins.error().text);
  return *std::move(bins);
}

void add_options(CLI::App& verb, const std::shared_ptr<PrototypesOptions>& options) {
  CLI::Option* const model =
      verb.add_option("--model", options->model, kModelHelp)->type_name("FILE");
  verb.add_option("files", options->files, "Traces, CSV or CSV.gz")->type_name("TRACE")->required();
  verb.add_flag("--sequences", options->labelled,
                "The files already contain phases: CSV with columns exec, n_samples and "
                "phase_runs(phase:length), as \"1:4 3:12 0:1\"")
      ->excludes(model);
  verb.add_option_function<std::string>(
          "--cover",
          [options](const std::string& text) {
            options->cover = take_share("--cover", text, kMinTreeShare);
          },
          "Share of executions to cover [0.9]")
      ->type_name("SHARE");
  verb.add_option_function<std::string>(
          "--bins", [options](const std::string& text) { options->bins = take_bins(text); },
          "Shortest length of each bin, in steps; 1: ignore lengths [1,10,100,1000]")
      ->type_name("LENGTHS");
  verb.add_option_function<std::string>(
          "--min-share",
          [options](const std::string& text) {
            options->min_share = take_share("--min-share", text, kMinTreeShare);
          },
          "Smallest branch, as a share of executions [0.01]")
      ->type_name("SHARE");
}

void add_output_options(CLI::App& verb, const std::shared_ptr<PrototypesOptions>& options) {
  verb.add_option_function<std::string>(
          "-o", [options](const std::string& form) { options->form = kReportForms.at(form); },
          "Output format [text]")
      ->check(CLI::IsMember({"text", "json", "dot", "svg"}));
  verb.add_flag_callback(
      "--json", [options] { options->form = ReportForm::json; }, "Same as -o json");
  verb.add_option_function<std::string>(
          "--draw",
          [options](const std::string& word) {
            options->drawing = word == "chain" ? Drawing::chain : Drawing::tree;
          },
          "Picture of dot and svg [tree]")
      ->check(CLI::IsMember({"tree", "chain"}));
  verb.add_option("--output", options->output, "File to write instead of standard output")
      ->type_name("FILE");
}

}  // namespace

void add_prototypes_verb(CLI::App& app, const CommonOptions& common, int& exit_code) {
  CLI::App* const verb = app.add_subcommand(
      "prototypes", "Show courses of phases that executions take: prototypes, tree and chain");
  const auto options = std::make_shared<PrototypesOptions>();
  add_options(*verb, options);
  add_output_options(*verb, options);
  verb->callback([options, &common, &exit_code] {
    options->legend = common.legend;
    exit_code = finish(prototypes(*options));
  });
}

}  // namespace cgphase
