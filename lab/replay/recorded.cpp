#include "lab/replay/recorded.h"

#include <chrono>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "base/crc32.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/trace_input.h"
#include "lab/replay/demand.h"
#include "model/ai4dl.h"

namespace cgphase {
namespace {

using SharedEngine = std::shared_ptr<const PhaseEngine>;

Result<SharedEngine> read_engine(const std::string& path, std::optional<std::uint32_t>& crc) {
  const Result<std::string> text = read_file(path, kMaxModelFileBytes);
  if (!text) return std::unexpected(text.error());
  crc = crc32c(*text);
  Result<Model> model = parse_model(*text, path);
  if (!model) return std::unexpected(model.error());
  return PhaseEngine::create(std::move(*model));
}

double length_seconds(const Execution& execution) {
  const auto first = execution.rows.front().time, last = execution.rows.back().time;
  return std::chrono::duration<double>(last - first).count();
}

struct ReadTrace : TraceSource {
  std::size_t executions = 0;
};

// An execution and its file.
struct FiledExecution {
  const Execution* execution;
  const std::string* path;
};

std::vector<FiledExecution> with_files(std::span<const ReadTrace> traces,
                                       std::span<const Execution> executions) {
  std::vector<FiledExecution> all;
  for (const ReadTrace& trace : traces)
    for (std::size_t i = 0; i < trace.executions; ++i)
      all.push_back({&executions[all.size()], &trace.path});
  return all;
}

bool at_one_time(const Execution& a, const Execution& b) {
  return a.rows.front().wall_time <= b.rows.back().wall_time &&
         b.rows.front().wall_time <= a.rows.back().wall_time;
}

// Detects an execution that is replayed and learned from, in whatever files its rows are.
Status check_executions(const std::vector<FiledExecution>& replayed,
                        const std::vector<FiledExecution>& training) {
  using Names = std::pair<std::string_view, std::string_view>;
  std::map<Names, std::vector<FiledExecution>> known;
  for (const FiledExecution& taught : training)
    known[{taught.execution->service, taught.execution->id}].push_back(taught);
  for (const FiledExecution& played : replayed) {
    const auto namesakes = known.find({played.execution->service, played.execution->id});
    if (namesakes == known.end()) continue;
    for (const FiledExecution& taught : namesakes->second)
      if (at_one_time(*played.execution, *taught.execution))
        return failure(ErrorKind::invalid,
                       *taught.path + ": --train has execution \"" +
                           escape_name(played.execution->id) + "\" at the time at which " +
                           *played.path +
                           " replays it; the policy would know the future: remove it from one of "
                           "them, or give another run another pod.id");
  }
  return {};
}

// Adds the executions of the traces to `executions`. Lowers `rows_left` by their rows.
Result<std::vector<ReadTrace>> read_traces(const std::vector<std::string>& paths,
                                             const std::vector<std::string>& columns,
                                             std::size_t& rows_left,
                                             std::vector<Execution>& executions) {
  std::vector<ReadTrace> sources;
  for (const std::string& path : paths) {
    Result<Trace> trace = read_trace_input(path, {.columns = columns, .max_rows = rows_left});
    if (!trace) return std::unexpected(trace.error());
    ReadTrace& source = sources.emplace_back(ReadTrace{*trace});
    source.executions = trace->executions.size();
    for (const Execution& execution : trace->executions) rows_left -= execution.rows.size();
    std::ranges::move(trace->executions, std::back_inserter(executions));
  }
  return sources;
}

}  // namespace

Result<Recorded> read_recorded(const RecordedPaths& paths) {
  Recorded recorded;
  ReplayInput& input = recorded.input;
  if (!paths.model.empty()) {
    Result<SharedEngine> engine = read_engine(paths.model, recorded.model_crc);
    if (!engine) return std::unexpected(engine.error());
    input.engine = *std::move(engine);
  }
  if (paths.compat_model) {
    Result<SharedEngine> engine = read_engine(*paths.compat_model, recorded.compat_model_crc);
    if (!engine) return std::unexpected(engine.error());
    input.compat_engine = *std::move(engine);
    if (!has_only_columns(input.compat_engine->model().schema))
      return failure(ErrorKind::invalid, *paths.compat_model +
                                             ": --compat-model needs a model imported from AI4DL "
                                             "(cgphase model import)");
  }
  const auto columns = replay_columns(input.engine.get(), input.compat_engine.get());
  if (!columns) return std::unexpected(columns.error());
  std::size_t rows_left = kMaxTraceRows;
  auto traces = read_traces(paths.traces, *columns, rows_left, input.executions);
  if (!traces) return std::unexpected(traces.error());
  auto training = read_traces(paths.training, *columns, rows_left, input.training);
  if (!training) return std::unexpected(training.error());
  if (Status runs = check_executions(with_files(*traces, input.executions),
                                     with_files(*training, input.training));
      !runs)
    return std::unexpected(runs.error());
  recorded.traces.assign(traces->begin(), traces->end());
  recorded.training.assign(training->begin(), training->end());
  recorded.cadence_seconds = cadence_of(input.executions.front());
  for (const Execution& execution : input.executions)
    recorded.played_seconds += length_seconds(execution);
  return recorded;
}

}  // namespace cgphase
