// plot: draws executions of a trace, the cohesion of their clusters, or a live container as SVG.
// Only a live container needs the daemon.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/commands/verbs.h"
#include "cli/daemon_client.h"
#include "cli/offline.h"
#include "cli/options.h"
#include "cli/output/print.h"
#include "cli/trace_input.h"
#include "lab/plot/container_plot.h"
#include "lab/plot/trace_plot.h"
#include "lab/plot/variance_plot.h"
#include "lab/replay/figures.h"
#include "lab/replay/recorded.h"
#include "model/trace_features.h"
#include "model/train/cluster_variance.h"

namespace cgphase {
namespace {

struct PlotOptions {
  std::string model = default_model_path(), trace, output, kind = "trace", from, until;
  std::optional<std::string> id;
};

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::unexpected<Complaint> no_execution(const std::string& path,
                                        std::span<const std::string_view> ids,
                                        const std::string& id) {
  const std::string_view close = nearest(id, ids);
  return complaint(Exit::no_container,
                   fmt::format("{}: no execution '{}'; {}", path, escape_name(id),
                               close.empty() ? "column pod.id has the names"
                                             : "did you mean '" + escape_name(close) + "'?"));
}

// Index of the execution that the user named, in its raw or its printed form.
template <class Executions>
OrComplaint<std::size_t> place_of(const Executions& executions, const std::string& path,
                                  const std::string& id) {
  std::vector<std::string_view> ids;
  for (const ExecutionHeader& execution : executions) ids.push_back(execution.id);
  for (const std::string& wanted : {id, unescape_name(id)}) {
    const auto found = std::ranges::find(ids, wanted);
    if (found != ids.end()) return static_cast<std::size_t>(found - ids.begin());
  }
  return no_execution(path, ids, id);
}

// Reads the executions to draw: all, or the one that the user named.
OrComplaint<Trace> read_chosen(const PlotOptions& options, const Model& model) {
  Result<Trace> trace =
      read_trace_input(options.trace, {.columns = schema_columns(model.schema)});
  if (!trace) return complaint(trace.error());
  if (!options.id) return *std::move(trace);
  const auto place = place_of(trace->executions, options.trace, *options.id);
  if (!place) return std::unexpected(place.error());
  std::swap(trace->executions.front(), trace->executions[*place]);
  trace->executions.resize(1);
  return *std::move(trace);
}

OrComplaint<Model> read_model(const PlotOptions& options) {
  Result<Model> model = load_model(options.model);
  if (model) return std::move(*model);
  if (model.error().kind != ErrorKind::not_found) return complaint(model.error());
  return complaint(Exit::invalid, model.error().text + "; name a model with --model");
}

// ---- trace ----

std::unexpected<Complaint> nothing_to_plot(const std::string& path) {
  return complaint(
      Exit::invalid,
      path +
          ": nothing to plot: no column has CPU use (cpu.usage.usec, cpu.usage, cpu.usage.cores) "
          "or memory use (memory.anon, mem.working.set, mem.current)");
}

bool anything_in(const TracePlot& plot) {
  return std::ranges::any_of(plot.executions, [](const PlottedExecution& execution) {
    return execution.cores().any() || execution.gib().any();
  });
}

OrComplaint<std::string> traced(const PlotOptions& options) {
  OrComplaint<Model> model = read_model(options);
  if (!model) return std::unexpected(model.error());
  OrComplaint<Trace> trace = read_chosen(options, *model);
  if (!trace) return std::unexpected(trace.error());
  const auto engine = PhaseEngine::create(std::move(*model));
  if (!engine) return complaint(engine.error());
  ReplayInput input;
  input.executions = std::move(trace->executions);
  input.engine = *engine;
  TracePlot plot;
  plot.source = file_name(options.trace);
  plot.total = input.executions.size();
  plot.phase_source = "phases of model " + file_name(options.model);
  plot.phase_names = phase_names_of((*engine)->model());
  if (std::ranges::any_of(plot.phase_names, [](const auto& name) { return !name.empty(); }))
    plot.phase_source += ", with their mean use in training";
  for (std::size_t i = 0; i < std::min(plot.total, kMostPlottedExecutions); ++i)
    plot.executions.push_back(plotted(input, i, {}));
  if (anything_in(plot)) return draw_trace(plot);
  return nothing_to_plot(options.trace);
}

// ---- replay ----

// Limits of policy `phase`, with the defaults of `cgphase replay --bare`.
OrComplaint<std::string> replayed(const PlotOptions& options) {
  if (const auto model = read_model(options); !model) return std::unexpected(model.error());
  const Result<Recorded> recorded =
      read_recorded({.traces = {options.trace}, .training = {}, .model = options.model});
  if (!recorded) return complaint(recorded.error());
  const ReplayInput& input = recorded->input;
  std::size_t begin = 0, end = input.executions.size();
  if (options.id) {
    const auto place = place_of(input.executions, options.trace, *options.id);
    if (!place) return std::unexpected(place.error());
    begin = *place;
    end = *place + 1;
  }
  const Result<ContenderResult> result = replay(input, {}, {{"phase", {}}, 0}, true);
  if (!result) return complaint(result.error());
  const ContenderResult* const shown[] = {&*result};
  TracePlot plot =
      empty_replay_plot(input, file_name(options.trace), file_name(options.model), shown);
  plot.total = end - begin;
  for (std::size_t i = begin; i < std::min(end, begin + kMostPlottedExecutions); ++i)
    plot.executions.push_back(plotted(input, i, shown));
  if (anything_in(plot)) return draw_trace(plot);
  return nothing_to_plot(options.trace);
}

// ---- variance ----

OrComplaint<std::string> variance(const PlotOptions& options) {
  const OrComplaint<Model> model = read_model(options);
  if (!model) return std::unexpected(model.error());
  const OrComplaint<Trace> trace = read_chosen(options, *model);
  if (!trace) return std::unexpected(trace.error());
  DatasetMaker maker(model->schema, model->step_seconds, model->crbm.n_his);
  for (std::size_t i = 0; i < trace->executions.size(); ++i)
    for (const TraceRow& row : trace->executions[i].rows)
      maker.add(i, trace->executions[i], row);
  const Result<ClusterVariance> found = cluster_variance(*model, maker.finish(model->scaler));
  if (!found) return complaint({found.error().kind, options.trace + ": " + found.error().text});
  VariancePlot plot{file_name(options.trace), "", found->within, found->elbow};
  plot.points = fmt::format("hidden activations of model {}, {} windows", file_name(options.model),
                            found->windows);
  if (found->stride > 1) plot.points += fmt::format(", one in {} clustered", found->stride);
  return draw_variance(plot);
}

// ---- the verb ----

// A relative path, an ending .csv or .gz, or an existing file names a trace. Anything else names a
// container.
bool is_file(const std::string& name) {
  std::error_code ignored;
  return name.find('/') != name.npos || name.ends_with(".csv") || name.ends_with(".gz") ||
         (std::filesystem::exists(name, ignored) && !std::filesystem::is_directory(name, ignored));
}

OrComplaint<std::string> container(const PlotOptions& options, const CommonOptions& common) {
  auto picture = plot_container({options.trace, options.from, options.until}, common);
  if (!picture && picture.error().exit == Exit::unreachable)
    picture.error().text += fmt::format("; '{}' is not a file, so it was read as a container",
                                        escape_name(options.trace));
  return picture;
}

OrComplaint<std::string> draw(const CLI::App& verb, const PlotOptions& options,
                          const CommonOptions& common) {
  const bool file = is_file(options.trace);
  using Names = std::vector<const char*>;
  const Names others =
      file ? Names{"--since", "--until"} : Names{"--kind", "--model", "--id"};
  for (const char* name : others)
    if (verb.count(name) > 0)
      return complaint(Exit::usage,
                       fmt::format("{} needs a {}; '{}' is a {}", name,
                                   file ? "container" : "trace", escape_name(options.trace),
                                   file ? "file" : "container, because there is no such file"));
  if (!file) return container(options, common);
  if (options.kind == "variance") return variance(options);
  if (options.kind == "replay") return replayed(options);
  return traced(options);
}

int plot_verb(const CLI::App& verb, const PlotOptions& options, const CommonOptions& common) {
  const OrComplaint<std::string> picture = draw(verb, options, common);
  if (!picture) return complain(picture.error());
  const Status written = emit(*picture, options.output);
  return written ? 0 : complain(complaint(written.error()).error());
}

}  // namespace

void add_plot_verb(CLI::App& app, const CommonOptions& common, int& exit_code) {
  CLI::App* const verb = app.add_subcommand("plot", "Draw use, limits and phases as SVG");
  const auto options = std::make_shared<PlotOptions>();
  verb->add_option("trace", options->trace,
                   "Trace, CSV or CSV.gz; or name or id of a container, from the daemon's history")
      ->type_name("TRACE|CONTAINER")
      ->required();
  verb->add_option("-o,--output", options->output, "SVG file to write")
      ->type_name("FILE")
      ->required();
  verb->add_option("--kind", options->kind,
                   "For a trace: the trace, its clusters by number, or limits of the policy")
      ->check(CLI::IsMember({"trace", "variance", "replay"}))
      ->capture_default_str();
  verb->add_option("--model", options->model, kModelHelp)->type_name("FILE");
  verb->add_option("--id", options->id, "Only this execution of a trace (column pod.id)")
      ->type_name("EXECUTION");
  verb->add_option(
          "--from,--since", options->from,
          "For a container: start time (-10m, \"3m ago\", ISO, epoch) [an hour before the end]")
      ->type_name("TIME");
  verb->add_option("--until", options->until, "For a container: end time [now]")->type_name("TIME");
  verb->callback([verb, options, &common, &exit_code] {
    exit_code = plot_verb(*verb, *options, common);
  });
}

}  // namespace cgphase
