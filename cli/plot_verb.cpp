#include "cli/plot_verb.h"

#include <fmt/format.h>

#include <algorithm>
#include <expected>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "cli/container_plot.h"
#include "cli/daemon_client.h"
#include "cli/offline.h"
#include "cli/plot/phase_lane.h"
#include "cli/plot/trace_plot.h"
#include "cli/plot/variance_plot.h"
#include "cli/print.h"
#include "model/trace_features.h"
#include "model/trace_phases.h"
#include "model/train/cluster_variance.h"

namespace cgphase {
namespace {

struct PlotOptions {
  std::string model = kInstalledModel, trace, output, kind = "trace", from, until;
  std::optional<std::string> id;
  bool labels = false;
};

template <class T>
using Outcome = std::expected<T, Complaint>;

std::unexpected<Complaint> complaint(Exit exit, std::string text) {
  return std::unexpected(Complaint{exit, std::move(text)});
}

// Files are input: one that is not there is as invalid as one that cannot be read.
std::unexpected<Complaint> complaint(const Error& error) {
  switch (error.kind) {
    case ErrorKind::invalid:
    case ErrorKind::not_found: return complaint(Exit::invalid, error.text);
    case ErrorKind::denied: return complaint(Exit::denied, error.text);
    default: return complaint(Exit::failure, error.text);
  }
}

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::unexpected<Complaint> no_execution(const Trace& trace, const std::string& id) {
  std::vector<std::string_view> ids;
  for (const Execution& execution : trace.executions) ids.push_back(execution.id);
  const std::string_view close = nearest(id, ids);
  return complaint(Exit::no_container,
                   fmt::format("{}: no execution '{}'; {}", trace.path, escape_name(id),
                               close.empty() ? "the column pod.id has their names"
                                             : "did you mean '" + escape_name(close) + "'?"));
}

// Leaves only the execution that the user named, as it is or as we print it.
Outcome<void> select(Trace& trace, const std::string& id) {
  for (const std::string& wanted : {id, unescape_name(id)}) {
    const auto found = std::ranges::find(trace.executions, wanted, &Execution::id);
    if (found == trace.executions.end()) continue;
    Execution execution = std::move(*found);
    trace.executions.clear();
    trace.executions.push_back(std::move(execution));
    return {};
  }
  return no_execution(trace, id);
}

Outcome<Trace> read(const PlotOptions& options, std::vector<std::string> columns) {
  TraceOptions asked;
  asked.columns = std::move(columns);
  Result<Trace> trace = read_trace(options.trace, asked);
  if (!trace) return complaint(trace.error());
  if (trace->executions.empty())
    return complaint(Exit::invalid, options.trace + ": has no rows; record some first");
  if (options.id)
    if (Outcome<void> selected = select(*trace, *options.id); !selected)
      return std::unexpected(selected.error());
  return std::move(*trace);
}

Outcome<Model> read_model(const PlotOptions& options) {
  Result<Model> model = load_model(options.model);
  if (model) return std::move(*model);
  if (model.error().kind != ErrorKind::not_found) return complaint(model.error());
  return complaint(Exit::invalid, model.error().text + "; name a model with --model");
}

// ---- trace ----

bool measured(const TraceRow& row) {
  return row.sample.cpu.usage_usec.has_value() || memory_need(row.sample).has_value();
}

Outcome<TracePlot> plot_of(const Trace& trace) {
  TracePlot plot;
  plot.source = file_name(trace.path);
  plot.total = trace.executions.size();
  bool anything = false;
  for (const Execution& execution : trace.executions) {
    anything |= std::ranges::any_of(execution.rows, measured);
    if (plot.executions.size() < kMostPlottedExecutions)
      plot.executions.push_back({&execution, {}});
  }
  if (anything) return plot;
  return complaint(Exit::invalid, trace.path +
                                      ": nothing to plot: no column tells the use of CPU "
                                      "(cpu.usage.usec, cpu.usage, cpu.usage.cores) or of memory "
                                      "(memory.anon, mem.working.set, mem.current)");
}

// What the samples of a phase used in training, of their limits.
std::string describe(const PhaseSummary& phase) {
  if (!(phase.count > 0)) return "";
  return fmt::format("(CPU {:.0f} %, memory {:.0f} %)", 100 * phase.cpu_mean_ratio,
                     100 * phase.memory_mean_ratio);
}

int lane_phase(const Phase& phase) {
  if (phase.known()) return phase.index;
  return phase.state == PhaseState::unknown ? kLaneUnknown : kLaneNothing;
}

Outcome<std::string> trace_with_model(const PlotOptions& options) {
  Outcome<Model> model = read_model(options);
  if (!model) return std::unexpected(model.error());
  const Outcome<Trace> trace = read(options, schema_columns(model->schema));
  if (!trace) return std::unexpected(trace.error());
  Outcome<TracePlot> plot = plot_of(*trace);
  if (!plot) return std::unexpected(plot.error());
  const auto engine = PhaseEngine::create(std::move(*model));
  if (!engine) return complaint(engine.error());
  plot->phase_source = "phases of model " + file_name(options.model);
  for (const PhaseSummary& phase : (*engine)->model().phases)
    plot->phase_names.push_back(describe(phase));
  if (std::ranges::any_of(plot->phase_names, [](const auto& name) { return !name.empty(); }))
    plot->phase_source += ", with their mean use in training";
  for (PlottedExecution& plotted : plot->executions)
    for (const Phase& phase : tracked_phases(*engine, *plotted.execution))
      plotted.phases.push_back(lane_phase(phase));
  return draw_trace(*plot);
}

// Labels as phases, numbered as they come; beyond what a model could have they are "others".
void take_labels(TracePlot& plot) {
  std::map<std::string, int> numbers;
  for (PlottedExecution& plotted : plot.executions)
    for (const TraceRow& row : plotted.execution->rows) {
      int phase = row.label.empty() ? kLaneNothing : kLaneUnknown;
      const auto known = numbers.find(row.label);
      if (known != numbers.end()) {
        phase = known->second;
      } else if (phase == kLaneUnknown && numbers.size() < std::size_t{kMaxPhases}) {
        phase = numbers[row.label] = static_cast<int>(plot.phase_names.size());
        plot.phase_names.push_back(row.label);
      }
      plotted.phases.push_back(phase);
    }
}

Outcome<std::string> trace_with_labels(const PlotOptions& options) {
  const Outcome<Trace> trace = read(options, {});
  if (!trace) return std::unexpected(trace.error());
  Outcome<TracePlot> plot = plot_of(*trace);
  if (!plot) return std::unexpected(plot.error());
  plot->phase_source = "labels of the trace";
  plot->unknown_name = "other labels";
  plot->nothing_name = "no label";
  take_labels(*plot);
  if (plot->phase_names.empty())
    return complaint(Exit::invalid, options.trace +
                                        ": column label: is missing or empty in the executions to "
                                        "be drawn; leave --labels out to see a model's phases");
  return draw_trace(*plot);
}

// ---- variance ----

Outcome<std::string> variance(const PlotOptions& options) {
  const Outcome<Model> model = read_model(options);
  if (!model) return std::unexpected(model.error());
  const Outcome<Trace> trace = read(options, schema_columns(model->schema));
  if (!trace) return std::unexpected(trace.error());
  const Result<ClusterVariance> found = cluster_variance(*model, std::span(&*trace, 1));
  if (!found) return complaint({found.error().kind, options.trace + ": " + found.error().text});
  VariancePlot plot{file_name(options.trace), "", found->within, found->elbow};
  plot.points = fmt::format("hidden activations of model {}, {} windows", file_name(options.model),
                            found->windows);
  if (found->stride > 1) plot.points += fmt::format(", one in {} clustered", found->stride);
  return draw_variance(plot);
}

// ---- the verb ----

// Traces have a path, an ending or are there; all else is the name of a container.
bool is_file(const std::string& name) {
  std::error_code ignored;
  return name.find('/') != name.npos || name.ends_with(".csv") || name.ends_with(".gz") ||
         std::filesystem::exists(name, ignored);
}

Outcome<std::string> container(const PlotOptions& options, const CommonOptions& common) {
  auto picture = plot_container({options.trace, options.from, options.until}, common);
  if (!picture && picture.error().exit == Exit::unreachable)
    picture.error().text += fmt::format("; '{}' is no file, so it was taken for a container",
                                        escape_name(options.trace));
  return picture;
}

Outcome<std::string> draw(const CLI::App& verb, const PlotOptions& options,
                          const CommonOptions& common) {
  const bool file = is_file(options.trace), clusters = options.kind == "variance";
  using Names = std::vector<const char*>;
  const Names others =
      file ? Names{"--since", "--until"} : Names{"--kind", "--model", "--id", "--labels"};
  for (const char* name : others)
    if (verb.count(name) > 0)
      return complaint(Exit::usage,
                       fmt::format("{} goes with a {} only; '{}' is a {}", name,
                                   file ? "container" : "trace", escape_name(options.trace),
                                   file ? "file" : "container, for there is no such file"));
  if (!file) return container(options, common);
  if (clusters && options.labels)
    return complaint(Exit::usage, "--labels goes with --kind trace only; leave one of them out");
  return clusters         ? variance(options)
         : options.labels ? trace_with_labels(options)
                          : trace_with_model(options);
}

int plot_verb(const CLI::App& verb, const PlotOptions& options, const CommonOptions& common) {
  const Outcome<std::string> picture = draw(verb, options, common);
  if (!picture) return complain(picture.error());
  const Status written = replace_file(options.output, *picture);
  return written ? 0 : complain(complaint(written.error()).error());
}

}  // namespace

void add_plot_verb(CLI::App& app, const CommonOptions& common, int& exit_code) {
  CLI::App* const verb = app.add_subcommand(
      "plot", "a trace or a live container over time, or clusters by their number, as SVG");
  const auto options = std::make_shared<PlotOptions>();
  verb->add_option("trace", options->trace,
                   "trace, CSV or CSV.gz; or a container's name or id, from the daemon's history")
      ->required();
  verb->add_option("-o,--output", options->output, "SVG file to write")->required();
  verb->add_option("--kind", options->kind, "of a trace: trace or variance")
      ->check(CLI::IsMember({"trace", "variance"}))
      ->capture_default_str();
  verb->add_option("--model", options->model, "model file")->capture_default_str();
  verb->add_option("--id", options->id, "only this execution of a trace (column pod.id)");
  verb->add_flag("--labels", options->labels, "phases from the column label instead of a model");
  verb->add_option("--from,--since", options->from,
                   "of a container: from (-10m, \"3m ago\", ISO, epoch) [an hour before the end]");
  verb->add_option("--until", options->until, "of a container: end [now]");
  verb->callback([verb, options, &common, &exit_code] {
    exit_code = plot_verb(*verb, *options, common);
  });
}

}  // namespace cgphase
