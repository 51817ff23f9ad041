#include "lab/replay/replay.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "lab/replay/demand.h"
#include "lab/replay/earlier_runs.h"
#include "lab/replay/play.h"
#include "lab/replay/statistics.h"
#include "model/trace_features.h"
#include "policy/policy.h"

namespace cgphase {
namespace {

double wall_seconds(const TraceRow& row) {
  return std::chrono::duration<double>(row.wall_time.time_since_epoch()).count();
}

// Ascending by the first row; executions without rows first.
std::vector<std::size_t> by_beginning(const std::vector<Execution>& executions) {
  const auto begin = [&](std::size_t i) {
    const auto& rows = executions[i].rows;
    return rows.empty() ? WallTime::min() : rows.front().wall_time;
  };
  std::vector<std::size_t> order(executions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return begin(a) < begin(b); });
  return order;
}

// Settings that all runs of one contender share.
class Campaign {
 public:
  Campaign(const ReplayInput& input, const ReplaySettings& settings, const Contender& contender,
           bool keep_limits)
      : input_(input), settings_(settings), contender_(contender), keep_limits_(keep_limits) {}

  Result<ContenderResult> run() {
    if (Status ready = prepare(); !ready) return std::unexpected(ready.error());
    ContenderResult result{.contender = contender_, .safety = settings_.safety,
                           .guard_threshold = settings_.loop.guard_threshold, .executions = {}};
    for (const Execution& execution : input_.training) expect(execution, true);
    for (const Execution& execution : input_.executions) expect(execution, false);
    for (const std::size_t i : by_beginning(input_.training)) {
      const auto taught = play_one(input_.training[i], true);
      if (!taught) return std::unexpected(taught.error());
    }
    result.executions.resize(input_.executions.size());
    for (const std::size_t i : by_beginning(input_.executions)) {
      auto played = play_one(input_.executions[i], false);
      if (!played) return std::unexpected(played.error());
      result.executions[i] = std::move(*played);
    }
    return result;
  }

 private:
  Status prepare() {
    const std::string& name = contender_.policy.name;
    compat_ = name == "ai4dl-phase-compat";
    if (compat_ && !input_.compat_engine)
      return failure(ErrorKind::invalid,
                     name + ": needs AI4DL's own model (cgphase model import, --compat-model)");
    if (name != "ai4dl-phase" && !compat_) return {};
    Result<TrainedStatistics> trained = TrainedStatistics::create(
        input_.training, compat_ ? input_.compat_engine : input_.engine, compat_);
    if (!trained) return failure(trained.error().kind, name + ": " + trained.error().text);
    statistics_ = std::move(*trained);
    return {};
  }

  static double begin_of(const Execution& execution, bool teaches) {
    return teaches ? EarlierRuns::kBeforeAll : wall_seconds(execution.rows.front());
  }

  void expect(const Execution& execution, bool teaches) {
    if (!execution.rows.empty())
      earlier_.expect(execution.service, begin_of(execution, teaches));
  }

  Result<ExecutionResult> play_one(const Execution& execution, bool teaches) {
    ExecutionResult result{.id = execution.id, .service = execution.service};
    if (execution.rows.empty()) return result;
    const double begin = begin_of(execution, teaches);
    EarlierRuns::Known known = earlier_.before(execution.service, begin);
    PlayPlan plan{.settings = settings_, .contender = contender_,
                  .engine = compat_ ? input_.compat_engine : input_.engine,
                  .compat = compat_, .prior = std::move(known.learned),
                  .job_seconds = known.usual_seconds, .courses = std::move(known.courses),
                  .statistics = nullptr,
                  .keep_limits = keep_limits_ && !teaches};
    if (statistics_)
      plan.statistics = statistics_->of(execution.original, execution.host);
    Result<Played> played = settings_.safety ? play_with_rails(execution, plan)
                                            : play(execution, plan);
    if (!played) return std::unexpected(played.error());
    // Uses the monotonic clock, because the wall clock may have been set back.
    const double length = std::chrono::duration<double>(execution.rows.back().time -
                                                        execution.rows.front().time).count();
    earlier_.ended(execution.service, teaches ? EarlierRuns::kBeforeAll : begin + length, length,
                   std::move(played->learned), std::move(played->course));
    played->result.cpu_by = yardstick_of(execution, Resource::cpu);
    played->result.memory_by = yardstick_of(execution, Resource::memory);
    return std::move(played->result);
  }

  const ReplayInput& input_;
  const ReplaySettings& settings_;
  const Contender& contender_;
  bool keep_limits_;
  bool compat_ = false;
  std::optional<TrainedStatistics> statistics_;
  EarlierRuns earlier_;
};

}  // namespace

const char* to_string(Yardstick yardstick) {
  switch (yardstick) {
    case Yardstick::limit: return "limit";
    case Yardstick::host: return "host";
    case Yardstick::largest_use: return "largest use";
  }
  return "";
}

Yardstick yardstick_of(const ExecutionHeader& execution, Resource resource) {
  const bool cpu = resource == Resource::cpu;
  const bool limited = cpu ? execution.original.cpu_cores().has_value()
                           : execution.original.memory_bytes().has_value();
  if (limited) return Yardstick::limit;
  const bool told = cpu ? execution.host_cores_told : execution.host_memory_told;
  return told ? Yardstick::host : Yardstick::largest_use;
}

std::vector<ReplaySums> sums_of(const ContenderResult& result, Resource resource) {
  std::vector<ReplaySums> executions;
  for (const ExecutionResult& execution : result.executions)
    executions.push_back(resource == Resource::cpu ? execution.cpu : execution.memory);
  return executions;
}

Result<std::vector<std::string>> replay_columns(const PhaseEngine* engine,
                                                const PhaseEngine* compat_engine) {
  std::vector<std::string> columns, compat_columns;
  if (engine) columns = schema_columns(engine->model().schema);
  if (compat_engine) compat_columns = schema_columns(compat_engine->model().schema);
  if (!columns.empty() && !compat_columns.empty() && columns != compat_columns)
    return failure(ErrorKind::invalid,
                   "the two models use different columns of the trace; replay them separately");
  return columns.empty() ? compat_columns : columns;
}

Result<ContenderResult> replay(const ReplayInput& input, const ReplaySettings& settings,
                               const Contender& contender, bool keep_limits) {
  return Campaign(input, settings, contender, keep_limits).run();
}

}  // namespace cgphase
