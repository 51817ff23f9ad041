#include "cli/model_windows.h"

#include <utility>

#include "model/trace.h"
#include "model/trace_features.h"

namespace cgphase {

Result<Dataset> model_windows(const Model& model, const std::vector<std::string>& paths) {
  TraceOptions options;
  options.columns = schema_columns(model.schema);
  std::vector<Trace> traces;
  for (const std::string& path : paths) {
    Result<Trace> trace = read_trace(path, options);
    if (!trace) return std::unexpected(trace.error());
    traces.push_back(std::move(*trace));
  }
  return make_dataset(traces, model);
}

}  // namespace cgphase
