#include <utility>

#include "traces/text_lines.h"
#include "traces/trace.h"
#include "traces/trace_parser.h"
#include "traces/trace_shape.h"

namespace cgphase {
namespace {

// Skips to the first line after the header.
Status skip_header(TextLines& lines, const TraceShape& shape) {
  std::string_view line;
  while (lines.line_number() < shape.header_line) {
    const Result<bool> more = lines.next(line);
    if (!more) return std::unexpected(more.error());
    if (!*more)
      return failure(ErrorKind::io, lines.path() + ": the file changed while it was read");
  }
  return {};
}

Result<bool> read_row(TextLines& lines, TraceParser& parser, TraceRow& row) {
  std::string_view line;
  for (;;) {
    const Result<bool> more = lines.next(line);
    if (!more || !*more) return more;
    const Result<bool> is_row = parser.read_row(line, lines.line_number(), row);
    if (!is_row || *is_row) return is_row;
  }
}

}  // namespace

class TraceReader::Impl {
 public:
  Impl(TextLines the_lines, const TraceOptions& the_options, const TraceShape& the_shape)
      : lines(std::move(the_lines)), options(the_options), shape(the_shape),
        parser(lines.path(), the_options, the_shape) {}

  // Reads the same file from its first row.
  static Result<std::unique_ptr<Impl>> begin(const TextLines& file, const TraceOptions& options,
                                             const TraceShape& shape) {
    Result<TextLines> lines = file.again();
    if (!lines) return std::unexpected(lines.error());
    if (Status skipped = skip_header(*lines, shape); !skipped)
      return std::unexpected(skipped.error());
    return std::make_unique<Impl>(std::move(*lines), options, shape);
  }

  // Completes the header of an execution when its first row was read.
  Status begin_execution(const TraceRow& row) {
    ExecutionHeader& execution = parser.execution(parser.index());
    derived.emplace_back();
    if (!parser.complete(parser.index())) {
      if (Status status = survey(); !status) return status;
      TraceParser::Measured measured = whole->measured(execution.id);
      derived.back() = measured.cpu_max;
      fill_host(measured, execution);
    }
    execution.original = row.sample.limits;
    if (derived.back()) execution.original.cpu_max = derived.back();
    return {};
  }

  // If the trace has neither limit nor host, its largest use is the scale.
  static void fill_host(const TraceParser::Measured& measured, ExecutionHeader& execution) {
    execution.host_cores_told = measured.host.cpu_cores > 0;
    execution.host_memory_told = measured.host.memory.value > 0;
    execution.host = measured.host;
    if (!execution.host_cores_told) execution.host.cpu_cores = measured.most_used.cpu_cores;
    if (!execution.host_memory_told) execution.host.memory = measured.most_used.memory;
  }

  // Reads the whole file once, ahead of this reader.
  Status survey() {
    if (whole) return {};
    Result<TextLines> all = lines.again();
    if (!all) return std::unexpected(all.error());
    TraceParser everything(lines.path(), options, shape);
    if (Status skipped = skip_header(*all, shape); !skipped) return skipped;
    TraceRow row;
    for (bool more = true; more;) {
      const Result<bool> is_row = read_row(*all, everything, row);
      if (!is_row) return std::unexpected(is_row.error());
      more = *is_row;
    }
    whole = std::move(everything);
    return {};
  }

  TextLines lines;
  TraceOptions options;
  TraceShape shape;
  TraceParser parser;
  std::optional<TraceParser> whole;             // totals of the whole file, read when first needed
  std::vector<std::optional<CpuMax>> derived;   // per execution
};

TraceReader::TraceReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;
TraceReader::~TraceReader() = default;

Result<TraceReader> TraceReader::open(const std::string& path, const TraceOptions& options) {
  Result<TextLines> lines = TextLines::open(path);
  if (!lines) return std::unexpected(lines.error());
  const Result<TraceShape> shape = recognise_trace(*lines);
  if (!shape) return std::unexpected(shape.error());
  auto impl = Impl::begin(*lines, options, *shape);
  if (!impl) return std::unexpected(impl.error());
  return TraceReader(*std::move(impl));
}

Result<bool> TraceReader::next(TraceRow& row) {
  const Result<bool> more = read_row(impl_->lines, impl_->parser, row);
  if (!more || !*more) return more;
  const std::size_t index = impl_->parser.index();
  if (index == impl_->derived.size())
    if (Status status = impl_->begin_execution(row); !status)
      return std::unexpected(status.error());
  if (impl_->derived[index]) row.sample.limits.cpu_max = impl_->derived[index];
  return true;
}

const ExecutionHeader& TraceReader::execution() const {
  return impl_->parser.executions()[impl_->parser.index()];
}
std::size_t TraceReader::index() const { return impl_->parser.index(); }
std::span<const ExecutionHeader> TraceReader::executions() const {
  return impl_->parser.executions();
}
const std::string& TraceReader::path() const { return impl_->lines.path(); }
std::uint32_t TraceReader::crc() const { return impl_->lines.crc(); }

std::vector<std::string> TraceReader::notes() const { return impl_->parser.notes(); }
Status TraceReader::check_measured() const { return impl_->parser.check_measured(); }

Result<TraceReader> TraceReader::again() const {
  auto impl = Impl::begin(impl_->lines, impl_->options, impl_->shape);
  if (!impl) return std::unexpected(impl.error());
  return TraceReader(*std::move(impl));
}

Status read_rows(TraceReader& reader, const std::function<Status(const TraceRow&)>& take) {
  TraceRow row;
  for (;;) {
    const Result<bool> more = reader.next(row);
    if (!more) return std::unexpected(more.error());
    if (!*more) return {};
    if (Status status = take(row); !status) return status;
  }
}

Result<Trace> collect_rows(TraceReader& reader) {
  Trace trace;
  trace.path = reader.path();
  const Status read = read_rows(reader, [&](const TraceRow& row) -> Status {
    if (reader.index() == trace.executions.size())
      trace.executions.push_back({reader.execution(), {}});
    trace.executions[reader.index()].rows.push_back(row);
    return {};
  });
  if (!read) return std::unexpected(read.error());
  trace.crc = reader.crc();
  return trace;
}

Result<Trace> read_trace(const std::string& path, const TraceOptions& options) {
  Result<TraceReader> reader = TraceReader::open(path, options);
  if (!reader) return std::unexpected(reader.error());
  return collect_rows(*reader);
}

}  // namespace cgphase
