#include "lab/challenge.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <utility>

#include "base/text.h"
#include "cli/trace_input.h"
#include "model/phase_tracker.h"
#include "model/trace_features.h"
#include "model/train/dataset.h"
#include "model/train/train.h"

namespace cgphase {
namespace {

using RowTaker = std::function<Status(const TraceReader&, const TraceRow&)>;

// Reads all rows of all traces; calls `end` after each trace.
Status each_row(const std::vector<std::string>& traces, const RowTaker& take,
                const std::function<void(const TraceReader&)>& end = {}) {
  for (const std::string& path : traces) {
    Result<TraceReader> reader = TraceReader::open(path);
    if (!reader) return std::unexpected(reader.error());
    const Status read = read_rows(*reader, [&](const TraceRow& row) { return take(*reader, row); });
    if (!read) return read;
    if (end) end(*reader);
  }
  return {};
}

// The times of all rows, in order. Prints the remarks on the traces.
Result<std::vector<WallTime>> times_of(const std::vector<std::string>& traces) {
  std::vector<WallTime> times;
  for (const std::string& path : traces) {
    Result<TraceReader> reader = TraceReader::open(path);
    if (!reader) return std::unexpected(reader.error());
    const Status read = read_trace_input(*reader, [&](const TraceRow& row) -> Status {
      times.push_back(row.wall_time);
      return {};
    });
    if (!read) return std::unexpected(read.error());
  }
  std::ranges::sort(times);
  return times;
}

// Windows before the cut, and their sources.
struct TrainingPart {
  Dataset data;
  std::vector<TraceSource> sources;
};

Result<TrainingPart> training_part(const ChallengeOptions& options, const TrainOptions& train,
                                   const HistorySplit& split) {
  DatasetMaker maker(train.schema, train.step_seconds, train.history);
  TrainingPart part;
  const Status read = each_row(
      options.traces,
      [&](const TraceReader& reader, const TraceRow& row) -> Status {
        if (row.wall_time >= split.begin && row.wall_time < split.cut)
          maker.add(reader.index(), reader.execution(), row);
        return {};
      },
      [&](const TraceReader& reader) {
        maker.end_trace();
        const bool own = reader.path().starts_with("/proc/self/fd/");
        part.sources.push_back({own ? "history of this host" : reader.path(), reader.crc()});
      });
  if (!read) return std::unexpected(read.error());
  part.data = maker.finish();
  return part;
}

Result<std::vector<Execution>> executions_between(const ChallengeOptions& options, WallTime from,
                                                  WallTime until) {
  std::vector<Execution> executions;
  std::map<std::size_t, std::size_t> places;  // index of each execution of one trace
  const Status read = each_row(
      options.traces,
      [&](const TraceReader& reader, const TraceRow& row) -> Status {
        if (row.wall_time < from || row.wall_time >= until) return {};
        const auto [place, fresh] = places.try_emplace(reader.index(), executions.size());
        if (fresh) executions.push_back({reader.execution(), {}});
        executions[place->second].rows.push_back(row);
        return {};
      },
      [&](const TraceReader&) { places.clear(); });
  if (!read) return std::unexpected(read.error());
  return executions;
}

Result<ChallengeSide> play(ReplayInput& input, const Model& model,
                           const ChallengeOptions& options) {
  auto engine = PhaseEngine::create(model);
  if (!engine) return std::unexpected(engine.error());
  input.engine = *std::move(engine);
  const ReplaySettings settings{.loop = options.loop, .risk = options.risk};
  const auto result = replay(input, settings, {.policy = options.policy}, false);
  if (!result) return std::unexpected(result.error());
  ChallengeSide side;
  for (const Resource resource : kResources) {
    const std::vector<ReplaySums> sums = sums_of(*result, resource);
    if (measured(sums)) (resource == Resource::cpu ? side.cpu : side.memory) = total_of(sums);
  }
  return side;
}

TrainOptions training_options(const Model& champion, const ChallengeOptions& options) {
  TrainOptions train;
  train.schema = champion.schema;
  train.step_seconds = champion.step_seconds;
  train.clusters = options.clusters;
  return train;
}

// How the challenger is worse for one resource; empty if it is not.
std::string worse(const char* name, const ReplaySums& old, const ReplaySums& fresh) {
  if (fresh.samples_over > old.samples_over)
    return fmt::format("{}: {} samples over the limit, the model in use has {}", name,
                       fresh.samples_over, old.samples_over);
  if (fresh.would_oom > old.would_oom)
    return fmt::format("{}: {} windows with an OOM, the model in use has {}", name, fresh.would_oom,
                       old.would_oom);
  return "";
}

double allocated(const std::optional<ReplaySums>& sums) {
  return sums && sums->original > 0 ? sums->allocated / sums->original : 0;
}

}  // namespace

Result<std::optional<HistorySplit>> split_history(const std::vector<std::string>& traces,
                                                  const HistoryBounds& bounds, std::string& why) {
  const Result<std::vector<WallTime>> times = times_of(traces);
  if (!times) return std::unexpected(times.error());
  const WallTime first = times->front(), last = times->back();
  const double seconds = std::chrono::duration<double>(last - first).count();
  if (seconds < bounds.least_seconds) {
    why = fmt::format(
        "too little history: {} from the first sample to the last, at least {} is needed",
        human_duration(seconds), human_duration(bounds.least_seconds));
    return std::nullopt;
  }
  // The time of the row that is `most` rows, and at least one, before row `end`.
  const auto begin_of = [&](std::size_t end, std::size_t most) {
    return (*times)[end - std::min(std::max(most, std::size_t{1}), end)];
  };
  const auto rows_before = [&](WallTime time) {
    return static_cast<std::size_t>(std::ranges::lower_bound(*times, time) - times->begin());
  };
  const double share = bounds.held_out_ratio * static_cast<double>(times->size());
  HistorySplit split{.begin = {}, .teaching = {}, .cut = {}, .end = last};
  split.cut = begin_of(times->size(),
                       std::min(static_cast<std::size_t>(share), bounds.most_held_out_rows));
  const std::size_t older = rows_before(split.cut);
  split.begin = begin_of(older, bounds.most_training_rows);
  split.teaching =
      begin_of(older, std::min(bounds.most_teaching_rows, bounds.most_training_rows));
  split.training_rows = older - rows_before(split.begin);
  split.held_out_rows = times->size() - older;
  return split;
}

std::string why_not_better(const ChallengeSide& champion, const ChallengeSide& challenger) {
  if (champion.cpu && challenger.cpu)
    if (std::string more = worse("cpu", *champion.cpu, *challenger.cpu); !more.empty())
      return more;
  if (champion.memory && challenger.memory)
    if (std::string more = worse("memory", *champion.memory, *challenger.memory); !more.empty())
      return more;
  const double old = allocated(champion.cpu) + allocated(champion.memory);
  const double fresh = allocated(challenger.cpu) + allocated(challenger.memory);
  if (fresh <= old * (1 - kLeastGain)) return "";
  return fmt::format(
      "it allocates {:+.2f} % compared with the model in use; at most {:+.0f} % is allowed",
      old > 0 ? 100 * (fresh / old - 1) : 0.0, -100 * kLeastGain);
}

Result<ChallengeReport> challenge(const Model& champion, const ChallengeOptions& options) {
  if (!schema_columns(champion.schema).empty())
    return failure(ErrorKind::invalid,
                   "the model in use needs columns of traces, which the daemon does not have: name "
                   "another model with --model");
  ChallengeReport report;
  const auto split = split_history(options.traces, options.bounds, report.too_little);
  if (!split) return std::unexpected(split.error());
  if (!*split) return report;
  report.split = **split;
  const TrainOptions train_options = training_options(champion, options);
  auto training = training_part(options, train_options, report.split);
  if (!training) return std::unexpected(training.error());
  report.windows = training->data.size();
  if (report.windows < kFewestWindows) {
    report.too_little = fmt::format("too little history: {} windows to train on, at least {} are "
                                    "needed", report.windows, kFewestWindows);
    return report;
  }
  Result<Model> model = train(train_options, training->data, training->sources);
  if (!model) return std::unexpected(model.error());
  training = TrainingPart{};
  ReplayInput input;
  auto taught = executions_between(options, report.split.teaching, report.split.cut);
  if (!taught) return std::unexpected(taught.error());
  input.training = *std::move(taught);
  auto executions = executions_between(options, report.split.cut, WallTime::max());
  if (!executions) return std::unexpected(executions.error());
  input.executions = *std::move(executions);
  for (const bool old : {true, false}) {
    auto side = play(input, old ? champion : *model, options);
    if (!side) return std::unexpected(side.error());
    (old ? report.champion : report.challenger) = *side;
  }
  if (!report.champion.cpu && !report.champion.memory) {
    report.too_little = "too little history: nothing was measured in the part that is held out";
    return report;
  }
  report.lost = why_not_better(report.champion, report.challenger);
  report.model = *std::move(model);
  return report;
}

}  // namespace cgphase
