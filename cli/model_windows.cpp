#include "cli/model_windows.h"

#include "model/trace_features.h"

namespace cgphase {

Result<Dataset> model_windows(const Model& model, const std::vector<std::string>& paths) {
  DatasetMaker maker(model.schema, model.step_seconds, model.crbm.n_his);
  for (const std::string& path : paths)
    if (const auto source = add_trace(maker, path, schema_columns(model.schema)); !source)
      return std::unexpected(source.error());
  return maker.finish(model.scaler);
}

Result<TraceSource> add_trace(DatasetMaker& maker, const std::string& path,
                              const std::vector<std::string>& columns) {
  Result<TraceReader> reader =
      TraceReader::open(path, {.columns = columns, .max_rows = kAnyTraceRows});
  if (!reader) return std::unexpected(reader.error());
  const Status read = read_rows(*reader, [&](const TraceRow& row) -> Status {
    maker.add(reader->index(), reader->execution(), row);
    return {};
  });
  if (!read) return std::unexpected(read.error());
  maker.end_trace();
  return TraceSource{path, reader->crc()};
}

}  // namespace cgphase
