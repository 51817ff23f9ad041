#include "cli/replay/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/file.h"
#include "cli/plot/pareto_plot.h"
#include "cli/replay/report.h"
#include "model/trace_phases.h"

namespace cgphase {
namespace {

constexpr std::size_t kMostNameBytes = 60;
constexpr std::size_t kMostHeadBytes = 8192;
constexpr std::string_view kReplayOf = "Replay of";  // how the titles of executions begin

// What is not harmless in a file's name becomes a line.
std::string file_name_of(std::size_t place, const std::string& id) {
  std::string name = fmt::format("execution-{:02}", place + 1);
  if (!id.empty()) name += '-';
  for (const char c : id.substr(0, kMostNameBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    name += byte < 0x80 && (std::isalnum(byte) != 0 || c == '.' || c == '-') ? c : '_';
  }
  return name + ".svg";
}

// Whether file_name_of() or pareto_figures() gives such a name.
bool is_figure_name(std::string_view name) {
  constexpr std::string_view kBefore = "execution-", kBehind = ".svg";
  if (name == "pareto-cpu.svg" || name == "pareto-memory.svg") return true;
  if (!name.starts_with(kBefore) || !name.ends_with(kBehind)) return false;
  name.remove_prefix(kBefore.size());
  name.remove_suffix(std::min(kBehind.size(), name.size()));
  const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  return digits >= 2 && (digits == name.size() || name[digits] == '-');
}

// Whether such a file was drawn by this command: its title is at the beginning.
bool is_figure(const std::filesystem::path& path) {
  std::error_code error;
  if (!is_figure_name(path.filename().string()) ||
      !std::filesystem::is_regular_file(std::filesystem::symlink_status(path, error)))
    return false;
  std::string head(kMostHeadBytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return head.find("<title id=\"plot-title\">" + std::string(kReplayOf) + " ") !=
             std::string::npos ||
         head.find(std::string(kParetoTitle) + "</title>") != std::string::npos;
}

// Pictures in the directory that are none of `figures`.
Status remove_earlier(const std::string& directory, std::span<const Figure> figures) {
  std::error_code error;
  std::vector<std::filesystem::path> earlier;
  for (std::filesystem::directory_iterator file(directory, error), end; !error && file != end;
       file.increment(error)) {
    const std::string name = file->path().filename().string();
    if (std::ranges::find(figures, name, &Figure::name) == figures.end() &&
        is_figure(file->path()))
      earlier.push_back(file->path());
  }
  for (const std::filesystem::path& path : earlier)
    if (!error) std::filesystem::remove(path, error);
  return error ? Status(errno_failure(directory, error.value())) : Status{};
}

std::optional<double> positive(double value) {
  return std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
}

MonotonicTime at_seconds(double seconds) {
  return MonotonicTime(std::chrono::nanoseconds(std::llround(seconds * 1e9)));
}

// Weighted by job. What no execution had is not drawn.
std::vector<ParetoMark> marks_of(const Sweep& sweep, Resource resource) {
  std::vector<ParetoMark> marks;
  for (const SweepPoint& point : sweep.points) {
    const ReplayMeasures& mean = point.of(resource).mean;
    marks.push_back({mean.samples_over, mean.alloc_vs_static});
  }
  return marks;
}

// The same for all policies.
double oracle_of(const SweepPoint& point, Resource resource) {
  const ReplayMeasures& mean = point.of(resource).mean;
  return mean.alloc_vs_static - mean.above_oracle;
}

}  // namespace

PlottedExecution plotted(const ReplayInput& input, std::size_t place,
                         std::span<const ContenderResult* const> results) {
  const Execution& execution = input.executions[place];
  PlotSpan span;
  for (const TraceRow& row : execution.rows) span.add(row);
  PlottedExecution drawn(execution, span);
  std::optional<PhaseFollower> follower;
  if (input.engine) follower.emplace(input.engine);
  for (const TraceRow& row : execution.rows)
    drawn.add(row, follower ? lane_phase(follower->add(execution, row)) : kLaneNothing);
  for (std::size_t k = 0; k < results.size(); ++k) {
    const ReplayLimits& limits = results[k]->executions[place].limits;
    for (std::size_t i = 0; i < limits.seconds.size(); ++i)
      drawn.add_limits(k, at_seconds(limits.seconds[i]), positive(limits.cpu_cores[i]),
                       positive(limits.memory_bytes[i]));
  }
  return drawn;
}

TracePlot empty_replay_plot(const ReplayInput& input, const std::string& source,
                            const std::string& model,
                            std::span<const ContenderResult* const> results) {
  TracePlot plot;
  plot.kind = kReplayOf;
  plot.source = source;
  plot.total = input.executions.size();
  plot.phase_source = input.engine ? "phases of model " + model : "no model, no phases";
  if (input.engine) plot.phase_names = phase_names_of(input.engine->model());
  if (!input.engine) plot.nothing_name = "no model";
  for (const ContenderResult* result : results) plot.policies.push_back(policy_name(*result));
  return plot;
}

std::vector<Figure> execution_figures(const ReplayInput& input, const std::string& source,
                                      const std::string& model,
                                      std::span<const ContenderResult* const> results) {
  std::vector<Figure> figures;
  const std::size_t most = std::min(input.executions.size(), kMostExecutionFigures);
  for (std::size_t i = 0; i < most; ++i) {
    if (input.executions[i].rows.empty()) continue;
    TracePlot plot = empty_replay_plot(input, source, model, results);
    plot.total = 1;
    plot.executions.push_back(plotted(input, i, results));
    figures.push_back({file_name_of(i, input.executions[i].id), draw_trace(plot)});
  }
  return figures;
}

std::vector<Figure> pareto_figures(std::span<const Sweep> sweeps, const Sweep* controls,
                                   const std::string& source, const std::string& subtitle) {
  std::vector<Figure> figures;
  for (const Resource resource : kResources) {
    ParetoPlot plot;
    plot.resource = resource == Resource::cpu ? "CPU" : "Memory";
    plot.source = source;
    plot.subtitle = subtitle;
    for (const Sweep& sweep : sweeps) {
      if (!sweep.points.front().of(resource).measured()) continue;
      if (!plot.oracle) plot.oracle = oracle_of(sweep.points.front(), resource);
      if (plot.curves.size() < kMostParetoCurves)
        plot.curves.push_back({sweep.name, marks_of(sweep, resource), sweep.shipped});
    }
    if (plot.curves.empty()) continue;
    if (controls != nullptr) plot.controls = marks_of(*controls, resource);
    figures.push_back({fmt::format("pareto-{}.svg", to_string(resource)), draw_pareto(plot)});
  }
  return figures;
}

Status write_figures(const std::string& directory, std::span<const Figure> figures) {
  std::error_code error;
  std::filesystem::create_directory(directory, error);
  if (error) return errno_failure(directory, error.value());
  std::vector<FileReplacement> files;
  for (const Figure& figure : figures) {
    Result<FileReplacement> file = FileReplacement::create(directory + "/" + figure.name);
    if (!file) return std::unexpected(file.error());
    if (Status written = file->write(figure.svg); !written) return written;
    files.push_back(*std::move(file));
  }
  for (FileReplacement& file : files)
    if (Status status = file.commit(); !status) return status;
  return remove_earlier(directory, figures);
}

}  // namespace cgphase
