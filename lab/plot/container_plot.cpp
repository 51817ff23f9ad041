#include "lab/plot/container_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/output/print.h"
#include "cli/output/time_text.h"
#include "lab/plot/phase_lane.h"
#include "lab/plot/trace_plot.h"
#include "model/model.h"
#include "model/phase.h"

namespace cgphase {
namespace {

constexpr double kDefaultSeconds = 3600;
constexpr int kMostPoints = 3600;  // this many fit into a reply
constexpr std::size_t kMostReplies = 20;
constexpr double kMostUsec = 1e15;

// Rebuilds samples from points, as far as a plot needs them: a counter of CPU time, which falls if
// the daemon had no rate.
class Rebuilder {
 public:
  // Skips points that are not newer than the last one: a reply begins with the last point of the
  // previous reply.
  void add(const HistoryRow& point) {
    if (before_ && point.time <= *before_) return;
    TraceRow row;
    row.wall_time = point.time;
    row.time = MonotonicTime(row.wall_time.time_since_epoch());
    const double seconds =
        before_ ? std::chrono::duration<double>(point.time - *before_).count() : 0;
    before_ = point.time;
    if (point.cpu_cores && *point.cpu_cores >= 0)
      usec_ += static_cast<std::uint64_t>(std::min(*point.cpu_cores * seconds * 1e6, kMostUsec));
    else
      --usec_;
    row.sample.cpu.usage_usec = usec_;
    row.sample.memory.anon_bytes = point.memory_need_bytes;
    row.sample.limits = point.limits;
    execution.rows.push_back(std::move(row));
    phases.push_back(point.phase.index < kMaxPhases ? lane_phase(point.phase) : kLaneNothing);
  }

  Execution execution;
  std::vector<int> phases;

 private:
  std::optional<WallTime> before_;
  std::uint64_t usec_ = std::uint64_t{1} << 32;  // not 0, so that it can fall
};

// Returns the time, or the default, in seconds since the epoch.
std::expected<double, Complaint> seconds_of(const std::string& text, double otherwise, bool utc) {
  if (text.empty()) return otherwise;
  const Result<WallTime> time = parse_time(text, SystemClock().wall_now(), utc);
  if (!time) return complaint(Exit::usage, time.error().text);
  return std::chrono::duration<double>(time->time_since_epoch()).count();
}

// A reply has the oldest points of its span. If it is full, the next request starts at its last
// point.
std::expected<std::vector<HistoryReply>, Complaint> ask_history(const std::string& name,
                                                                double from, double until,
                                                                const CommonOptions& common) {
  // JSON cannot contain bytes that are not UTF-8: such a name is sent in its printed form.
  const std::string sent = printable(name) == name ? name : escape_name(name);
  std::vector<HistoryReply> replies;
  for (;;) {
    auto reply = ask_for<HistoryReply>(common.socket, HistoryRequest{.container = sent,
                                                                     .from_seconds = from,
                                                                     .until_seconds = until,
                                                                     .limit = kMostPoints});
    if (!reply) return std::unexpected(reply.error());
    const bool full = reply->points && reply->points->size() >= std::size_t{kMostPoints};
    if (full) from = std::max(seconds_since_epoch(reply->points->back().time), from);
    replies.push_back(*std::move(reply));
    if (!full || from >= until) return replies;
    if (replies.size() == kMostReplies)
      return complaint(Exit::usage, fmt::format("more than {} samples; choose a shorter time with "
                                                "--since and --until",
                                                kMostReplies * kMostPoints));
  }
}

}  // namespace

std::expected<std::string, Complaint> draw_history(std::span<const HistoryReply> replies,
                                                   int phase_count) {
  Rebuilder history;
  for (const HistoryReply& reply : replies)
    if (reply.points)
      for (const HistoryRow& point : *reply.points) history.add(point);
  const ContainerInfo& container = replies.front().container;
  if (history.phases.empty())
    return complaint(Exit::invalid, escape_name(container.name) +
                                        ": nothing was recorded in this time; choose an earlier "
                                        "--since");
  history.execution.id = container.name;
  history.execution.service = container.image;
  TracePlot plot;
  plot.kind = "Container";
  plot.source = history.execution.id;
  plot.phase_source = "phases as the daemon recognised them";
  const int highest = *std::ranges::max_element(history.phases);
  plot.phase_names.resize(
      static_cast<std::size_t>(std::clamp(phase_count, std::max(highest + 1, 0), kMaxPhases)));
  PlotSpan span;
  for (const TraceRow& row : history.execution.rows) span.add(row);
  PlottedExecution& drawn = plot.executions.emplace_back(history.execution, span);
  for (std::size_t i = 0; i < history.phases.size(); ++i)
    drawn.add(history.execution.rows[i], history.phases[i]);
  plot.total = 1;
  return draw_trace(plot);
}

std::expected<std::string, Complaint> plot_container(const ContainerPlotOptions& options,
                                                     const CommonOptions& common) {
  const double now = std::chrono::duration<double>(
                         SystemClock().wall_now().time_since_epoch()).count();
  const auto until = seconds_of(options.until, now, common.utc);
  if (!until) return std::unexpected(until.error());
  const auto from = seconds_of(options.from, *until - kDefaultSeconds, common.utc);
  if (!from) return std::unexpected(from.error());
  const auto replies = ask_history(options.container, std::max(*from, 0.0), *until, common);
  if (!replies) return std::unexpected(replies.error());
  const auto status = ask_for<StatusReport>(common.socket, StatusRequest{});
  if (!status) return std::unexpected(status.error());
  return draw_history(*replies, std::clamp(status->model.phases, 0, kMaxPhases));
}

}  // namespace cgphase
