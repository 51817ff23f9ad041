#include "cli/commands/trace_runs.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "cli/offline.h"
#include "cli/trace_input.h"
#include "core/core.h"
#include "model/model.h"
#include "model/trace_phases.h"

namespace cgphase {
namespace {

constexpr std::size_t kCadenceIntervals = 256;  // most intervals per execution

// Returns the median interval between rows, in seconds, per execution in order of appearance.
Result<std::vector<double>> cadences(TraceReader& reader) {
  struct Intervals {
    std::optional<MonotonicTime> last;
    std::vector<double> seconds;
  };
  std::vector<Intervals> found;
  const Status read = read_trace_input(reader, [&](const TraceRow& row) -> Status {
    if (reader.index() == found.size()) found.emplace_back();
    Intervals& one = found[reader.index()];
    if (one.last && one.seconds.size() < kCadenceIntervals)
      one.seconds.push_back(seconds_between(*one.last, row.time));
    one.last = row.time;
    return {};
  });
  if (!read) return std::unexpected(read.error());
  std::vector<double> medians;
  for (Intervals& one : found) {
    double median = 1;
    if (!one.seconds.empty()) {
      const auto middle =
          one.seconds.begin() + static_cast<std::ptrdiff_t>(one.seconds.size() / 2);
      std::ranges::nth_element(one.seconds, middle);
      median = std::max(*middle, 1e-3);
    }
    medians.push_back(median);
  }
  return medians;
}

// Turns the rows of one execution into observations and passes them to its policy.
class Watcher {
 public:
  Watcher(const ExecutionHeader& header, const TraceRow& first,
          const std::shared_ptr<const PhaseEngine>& engine, double cadence, double risk)
      : cadence_(cadence) {
    static_cast<ExecutionHeader&>(run) = header;
    run.begin = first.wall_time;
    PolicyEnvironment around;
    around.risk = risk;
    const double step = engine ? engine->model().step_seconds : cadence;
    around.cpu_horizon_seconds = std::max(kReactionSteps * step, cadence);
    around.memory_horizon_seconds = std::max(around.memory_horizon_seconds, cadence);
    run.policy = make_policy("phase", {}, around).value();
    if (engine) follower_.emplace(engine);
  }

  void add(const ExecutionHeader& header, const TraceRow& row) {
    Observation seen{.time = row.time};
    if (follower_) seen.phase = follower_->add(header, row);
    if (const auto need = memory_need(row.sample))
      seen.memory_need_bytes = static_cast<double>(need->value);
    if (before_) measure(row, seen);
    run.policy->observe(seen);
    keep_highest(run.highest_cpu_cores, seen.cpu_cores);
    keep_highest(run.highest_memory_bytes, seen.memory_need_bytes);
    before_ = row.sample.cpu;
    time_ = row.time;
  }

  WatchedRun run;

 private:
  static void keep_highest(std::optional<double>& highest, std::optional<double> value) {
    if (value) highest = std::max(*value, highest.value_or(*value));
  }

  void measure(const TraceRow& row, Observation& seen) const {
    const double seconds = seconds_between(time_, row.time);
    if (!(seconds > 0) || seconds > kGapIntervals * cadence_) return;
    seen.interval_seconds = seconds;
    if (const Counter used = growth(row.sample.cpu.usage_usec, before_->usage_usec))
      seen.cpu_cores = static_cast<double>(*used) / 1e6 / seconds;
    seen.cpu_censored =
        growth(row.sample.cpu.nr_throttled, before_->nr_throttled).value_or(0) > 0;
    if (const auto limit = row.sample.limits.cpu_cores()) seen.cpu_limit_cores = limit->value;
  }

  double cadence_;
  std::optional<PhaseFollower> follower_;
  std::optional<CpuStat> before_;
  MonotonicTime time_;
};

Status watch_trace(const std::string& path, const std::shared_ptr<const PhaseEngine>& engine,
                   double risk, std::vector<WatchedRun>& runs) {
  TraceOptions options{.columns = {}, .max_rows = kAnyTraceRows};
  if (engine) options.columns = schema_columns(engine->model().schema);
  Result<TraceReader> first = TraceReader::open(path, options);
  if (!first) return std::unexpected(first.error());
  const Result<std::vector<double>> usual = cadences(*first);
  if (!usual) return std::unexpected(usual.error());
  Result<TraceReader> reader = first->again();
  if (!reader) return std::unexpected(reader.error());
  std::vector<Watcher> watchers;
  const Status read = read_rows(*reader, [&](const TraceRow& row) -> Status {
    const std::size_t index = reader->index();
    if (index == usual->size())
      return failure(ErrorKind::io, path + ": the file changed while it was read");
    if (index == watchers.size())
      watchers.emplace_back(reader->execution(), row, engine, (*usual)[index], risk);
    watchers[index].add(reader->execution(), row);
    return {};
  });
  if (!read) return read;
  for (Watcher& watcher : watchers) runs.push_back(std::move(watcher.run));
  return {};
}

}  // namespace

Result<std::vector<WatchedRun>> watch_traces(std::span<const std::string> paths,
                                             const std::shared_ptr<const PhaseEngine>& engine,
                                             double risk) {
  std::vector<WatchedRun> runs;
  for (const std::string& path : paths)
    if (Status watched = watch_trace(path, engine, risk, runs); !watched)
      return std::unexpected(watched.error());
  return runs;
}

std::map<std::string, LearnedState> learned_by_service(std::span<const WatchedRun> runs) {
  std::vector<const WatchedRun*> order;
  for (const WatchedRun& run : runs) order.push_back(&run);
  std::ranges::stable_sort(order, {}, [](const WatchedRun* run) { return run->begin; });
  std::map<std::string, LearnedState> learned;
  for (const WatchedRun* run : order) {
    LearnedState& known = learned[run->service.empty() ? run->id : run->service];
    known = merge_learned(known, run->policy->learned());
  }
  return learned;
}

Result<std::shared_ptr<const PhaseEngine>> engine_of(const std::string& path) {
  Result<Model> model = load_model(path);
  if (!model && path == default_model_path() && model.error().kind == ErrorKind::not_found)
    return nullptr;
  if (!model) return std::unexpected(model.error());
  return PhaseEngine::create(std::move(*model));
}

}  // namespace cgphase
