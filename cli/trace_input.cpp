#include "cli/trace_input.h"

#include "cli/offline.h"

namespace cgphase {
namespace {

Status check_and_say(const TraceReader& reader) {
  if (Status measured = reader.check_measured(); !measured) return measured;
  for (const std::string& note : reader.notes()) say(reader.path() + ": " + note);
  return {};
}

}  // namespace

Status read_trace_input(TraceReader& reader, const std::function<Status(const TraceRow&)>& take) {
  if (Status read = read_rows(reader, take); !read) return read;
  return check_and_say(reader);
}

Result<Trace> read_trace_input(const std::string& path, const TraceOptions& options) {
  Result<TraceReader> reader = TraceReader::open(path, options);
  if (!reader) return std::unexpected(reader.error());
  Result<Trace> trace = collect_rows(*reader);
  if (!trace) return trace;
  if (Status status = check_and_say(*reader); !status) return std::unexpected(status.error());
  return trace;
}

}  // namespace cgphase
