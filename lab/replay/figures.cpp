#include "lab/replay/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/check.h"
#include "base/file.h"
#include "lab/plot/svg.h"
#include "lab/replay/report.h"
#include "model/trace_phases.h"

namespace cgphase {
namespace {

constexpr std::size_t kMostNameBytes = 60;
constexpr std::string_view kSvgEnd = "</svg>\n";

// Replaces characters that are unsafe in a file name by '-'.
std::string file_name_of(std::size_t place, const std::string& id) {
  std::string name = fmt::format("execution-{:02}", place + 1);
  if (!id.empty()) name += '-';
  for (const char c : id.substr(0, kMostNameBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    name += byte < 0x80 && (std::isalnum(byte) != 0 || c == '.' || c == '-') ? c : '_';
  }
  return name + ".svg";
}

// The end of a picture contains its file name. A copy under another name can thus be recognised.
std::string ending(std::string_view name) {
  return fmt::format("<metadata data-cgphase-replay=\"{}\"/>\n{}", xml_text(name), kSvgEnd);
}

std::string marked(const Figure& figure) {
  std::string svg = figure.svg;
  CHECK_INVARIANT(svg.ends_with(kSvgEnd));
  svg.replace(svg.size() - kSvgEnd.size(), kSvgEnd.size(), ending(figure.name));
  return svg;
}

// True if write_figures() wrote this file under this name.
bool is_figure(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(path, error))) return false;
  const std::string expected = ending(path.filename().string());
  std::ifstream file(path, std::ios::binary);
  file.seekg(-static_cast<std::streamoff>(expected.size()), std::ios::end);
  std::string end(expected.size(), '\0');
  file.read(end.data(), static_cast<std::streamsize>(end.size()));
  return file && end == expected;
}

// Removes pictures in the directory that are not in `figures`. Returns those that cannot be
// removed.
std::vector<std::string> remove_earlier(const std::string& directory,
                                        std::span<const Figure> figures) {
  std::error_code error;
  std::vector<std::filesystem::path> earlier;
  for (std::filesystem::directory_iterator file(directory, error), end; !error && file != end;
       file.increment(error)) {
    const std::string name = file->path().filename().string();
    if (std::ranges::find(figures, name, &Figure::name) == figures.end() &&
        is_figure(file->path()))
      earlier.push_back(file->path());
  }
  std::vector<std::string> left;
  for (const std::filesystem::path& path : earlier)
    if (!std::filesystem::remove(path, error) && error) left.push_back(path.filename().string());
  std::ranges::sort(left);
  return left;
}

std::optional<double> positive(double value) {
  return std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
}

MonotonicTime at_seconds(double seconds) {
  return MonotonicTime(std::chrono::nanoseconds(std::llround(seconds * 1e9)));
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
  plot.kind = "Replay of";
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

Result<std::vector<std::string>> write_figures(const std::string& directory,
                                               std::span<const Figure> figures) {
  std::error_code error;
  std::filesystem::create_directory(directory, error);
  if (error) return errno_failure(directory, error.value());
  std::vector<FileReplacement> files;
  for (const Figure& figure : figures) {
    Result<FileReplacement> file = FileReplacement::create(directory + "/" + figure.name);
    if (!file) return std::unexpected(file.error());
    if (Status written = file->write(marked(figure)); !written)
      return std::unexpected(written.error());
    files.push_back(*std::move(file));
  }
  for (FileReplacement& file : files)
    if (Status status = file.commit(); !status) return std::unexpected(status.error());
  return remove_earlier(directory, figures);
}

}  // namespace cgphase
