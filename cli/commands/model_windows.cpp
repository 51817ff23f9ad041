#include "cli/commands/model_windows.h"

#include <fmt/format.h>

#include "cli/trace_input.h"
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
      fmt::format(
          "{}{}: has no window of {} steps of {} s with all features of the model and no gap: "
          "record longer, or record the columns that the model uses (cgphase model show)",
          paths.front(), more, data.history + 1, model.step_seconds));
}

}  // namespace

Result<ModelWindows> model_windows(const Model& model, const std::vector<std::string>& paths) {
  DatasetMaker maker(model.schema, model.step_seconds, model.crbm.n_his);
  ModelWindows windows;
  for (const std::string& path : paths) {
    const Result<TraceSource> source = add_trace(maker, path, schema_columns(model.schema));
    if (!source) return std::unexpected(source.error());
    windows.sources.push_back(*source);
  }
  windows.data = maker.finish(model.scaler);
  if (Status status = check_windows(windows.data, model, paths); !status)
    return std::unexpected(status.error());
  return windows;
}

Result<TraceSource> add_trace(DatasetMaker& maker, const std::string& path,
                              const std::vector<std::string>& columns) {
  Result<TraceReader> reader =
      TraceReader::open(path, {.columns = columns});
  if (!reader) return std::unexpected(reader.error());
  const Status read = read_trace_input(*reader, [&](const TraceRow& row) -> Status {
    maker.add(reader->index(), reader->execution(), row);
    return {};
  });
  if (!read) return std::unexpected(read.error());
  maker.end_trace();
  return TraceSource{path, reader->crc()};
}

}  // namespace cgphase
