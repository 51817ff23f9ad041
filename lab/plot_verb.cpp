// plot: draws executions of a trace, the cohesion of their clusters, or a live container as SVG.
// Only a live container needs the daemon.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/commands/verbs.h"
#include "cli/daemon_client.h"
#include "cli/offline.h"
#include "cli/options.h"
#include "cli/output/print.h"
#include "cli/trace_input.h"
#include "lab/plot/container_plot.h"
#include "lab/plot/phase_lane.h"
#include "lab/plot/trace_plot.h"
#include "lab/plot/variance_plot.h"
#include "lab/replay/figures.h"
#include "lab/replay/recorded.h"
#include "model/trace_features.h"
#include "model/trace_phases.h"
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

// Facts about an execution, collected before it is drawn.
struct Surveyed {
  PlotSpan span;
  bool measured = false;
};

// A trace that was read once, and the executions to draw from it.
struct Source {
  TraceReader reader;
  std::vector<Surveyed> executions;
  std::size_t begin = 0, end = 0;  // range of executions to draw
};

bool measured(const TraceRow& row) {
  return row.sample.cpu.usage_usec.has_value() || memory_need(row.sample).has_value();
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

// Keeps only the execution that the user named.
OrComplaint<void> select(Source& source, const std::string& id) {
  const auto place = place_of(source.reader.executions(), source.reader.path(), id);
  if (!place) return std::unexpected(place.error());
  source.begin = *place;
  source.end = *place + 1;
  return {};
}

OrComplaint<Source> survey(const PlotOptions& options, std::vector<std::string> columns,
                       std::size_t most_rows = kAnyTraceRows) {
  Result<TraceReader> reader = TraceReader::open(
      options.trace, {.columns = std::move(columns), .max_rows = most_rows});
  if (!reader) return complaint(reader.error());
  Source source{*std::move(reader), {}};
  const Status read = read_trace_input(source.reader, [&](const TraceRow& row) -> Status {
    if (source.reader.index() == source.executions.size()) source.executions.emplace_back();
    Surveyed& execution = source.executions[source.reader.index()];
    execution.span.add(row);
    execution.measured |= measured(row);
    return {};
  });
  if (!read) return complaint(read.error());
  source.end = source.executions.size();
  if (options.id)
    if (OrComplaint<void> selected = select(source, *options.id); !selected)
      return std::unexpected(selected.error());
  return source;
}

// Passes at most `most` rows of the chosen executions to `take`, with the index of the execution
// among the chosen ones.
OrComplaint<void> read_chosen(
    const Source& source, std::size_t most,
    const std::function<void(std::size_t, const ExecutionHeader&, const TraceRow&)>& take) {
  Result<TraceReader> reader = source.reader.again();
  if (!reader) return complaint(reader.error());
  const std::size_t end = std::min(source.end, source.begin + std::min(most, source.end));
  const Status read = read_rows(*reader, [&](const TraceRow& row) -> Status {
    const std::size_t index = reader->index();
    if (index >= source.begin && index < end)
      take(index - source.begin, reader->execution(), row);
    return {};
  });
  if (!read) return complaint(read.error());
  return {};
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

// Returns the plot with its executions, still without rows.
OrComplaint<TracePlot> plot_of(const Source& source) {
  TracePlot plot;
  plot.source = file_name(source.reader.path());
  plot.total = source.end - source.begin;
  bool anything = false;
  for (std::size_t i = source.begin; i < source.end; ++i) {
    anything |= source.executions[i].measured;
    if (plot.executions.size() < kMostPlottedExecutions)
      plot.executions.emplace_back(source.reader.executions()[i], source.executions[i].span);
  }
  if (anything) return plot;
  return nothing_to_plot(source.reader.path());
}

OrComplaint<std::string> traced(const PlotOptions& options) {
  OrComplaint<Model> model = read_model(options);
  if (!model) return std::unexpected(model.error());
  const OrComplaint<Source> source = survey(options, schema_columns(model->schema));
  if (!source) return std::unexpected(source.error());
  OrComplaint<TracePlot> plot = plot_of(*source);
  if (!plot) return std::unexpected(plot.error());
  const auto engine = PhaseEngine::create(std::move(*model));
  if (!engine) return complaint(engine.error());
  plot->phase_source = "phases of model " + file_name(options.model);
  plot->phase_names = phase_names_of((*engine)->model());
  if (std::ranges::any_of(plot->phase_names, [](const auto& name) { return !name.empty(); }))
    plot->phase_source += ", with their mean use in training";
  std::vector<PhaseFollower> followers;
  for (std::size_t i = 0; i < plot->executions.size(); ++i) followers.emplace_back(*engine);
  const OrComplaint<void> drawn = read_chosen(
      *source, followers.size(),
      [&](std::size_t index, const ExecutionHeader& execution, const TraceRow& row) {
        plot->executions[index].add(row, lane_phase(followers[index].add(execution, row)));
      });
  if (!drawn) return std::unexpected(drawn.error());
  return draw_trace(*plot);
}

// ---- replay ----

bool anything_in(const TracePlot& plot) {
  return std::ranges::any_of(plot.executions, [](const PlottedExecution& execution) {
    return execution.cores().any() || execution.gib().any();
  });
}

// Limits of policy `phase`, with the defaults of `cgphase replay`.
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
  const OrComplaint<Source> source =
      survey(options, schema_columns(model->schema), kMaxTraceRows);
  if (!source) return std::unexpected(source.error());
  DatasetMaker maker(model->schema, model->step_seconds, model->crbm.n_his);
  const OrComplaint<void> read = read_chosen(
      *source, source->end,
      [&](std::size_t index, const ExecutionHeader& execution, const TraceRow& row) {
        maker.add(index, execution, row);
      });
  if (!read) return std::unexpected(read.error());
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
      ->required();
  verb->add_option("-o,--output", options->output, "SVG file to write")->required();
  verb->add_option("--kind", options->kind,
                   "For a trace: the trace, its clusters by number, or limits of the policy")
      ->check(CLI::IsMember({"trace", "variance", "replay"}))
      ->capture_default_str();
  verb->add_option("--model", options->model, "Model file")->capture_default_str();
  verb->add_option("--id", options->id, "Only this execution of a trace (column pod.id)");
  verb->add_option(
      "--from,--since", options->from,
      "For a container: start time (-10m, \"3m ago\", ISO, epoch) [an hour before the end]");
  verb->add_option("--until", options->until, "For a container: end time [now]");
  verb->callback([verb, options, &common, &exit_code] {
    exit_code = plot_verb(*verb, *options, common);
  });
}

}  // namespace cgphase
