#include "cli/model_windows.h"

#include <fmt/format.h>

#include <utility>

#include "model/trace.h"
#include "model/trace_features.h"

namespace cgphase {
namespace {

Status check_windows(const Dataset& data, const Model& model,
                     const std::vector<std::string>& paths) {
  if (data.size() > 0) return {};
  const std::string more =
      paths.size() > 1 ? fmt::format(" and {} more", paths.size() - 1) : std::string();
  return failure(
      ErrorKind::invalid,
      fmt::format("{}{}: gives no window of {} steps of {} s in which the model's features were "
                  "measured without a gap: record longer, or columns that the model looks at "
                  "(cgphase model show)",
                  paths.front(), more, data.history + 1, model.step_seconds));
}

}  // namespace

Result<Dataset> model_windows(const Model& model, const std::vector<std::string>& paths) {
  TraceOptions options;
  options.columns = schema_columns(model.schema);
  std::vector<Trace> traces;
  for (const std::string& path : paths) {
    Result<Trace> trace = read_trace(path, options);
    if (!trace) return std::unexpected(trace.error());
    traces.push_back(std::move(*trace));
  }
  Dataset data = make_dataset(traces, model);
  if (Status status = check_windows(data, model, paths); !status)
    return std::unexpected(status.error());
  return data;
}

}  // namespace cgphase
