// read_trace: a refusal names file and line. An accepted trace keeps the promises of
// traces/trace.h, is the same when read again, can be used by a model, and survives being written.
#include "traces/trace.h"

#include <cmath>

#include "model/feature_schema.h"
#include "model/trace_features.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/refusal.h"

using namespace cgphase;

namespace {

constexpr double kStepSeconds = 5;
const TraceOptions kOptions{.columns = {"cpu.usage", "mem.usage.pct", "memory.high"},
                            .max_rows = 500};

void check_rows(const Execution& execution) {
  CHECK_INVARIANT(!execution.rows.empty());
  CHECK_INVARIANT(std::isfinite(execution.host.cpu_cores) && execution.host.cpu_cores >= 0);
  CHECK_INVARIANT(execution.original == execution.rows.front().sample.limits);
  const TraceRow* before = nullptr;
  for (const TraceRow& row : execution.rows) {
    CHECK_INVARIANT(row.columns.size() == kOptions.columns.size());
    for (const std::optional<double>& value : row.columns)
      CHECK_INVARIANT(!value || std::isfinite(*value));
    CHECK_INVARIANT(row.wall_time.time_since_epoch().count() >= 0);
    CHECK_INVARIANT(row.sample.id == execution.rows.front().sample.id);
    if (before != nullptr) CHECK_INVARIANT(row.line > before->line);
    before = &row;
  }
}

void check_features(const Execution& execution) {
  const std::vector<FeatureExtractor::Step> steps =
      extract_features(execution, plain_schema(), kStepSeconds);
  CHECK_INVARIANT(steps.size() == execution.rows.size());
  for (const FeatureExtractor::Step& step : steps)
    if (step.vector)
      for (const std::optional<double>& value : step.vector->values)
        CHECK_INVARIANT(!value || std::isfinite(*value));
}

// Under its own column names: one written name may mean several columns.
std::string written(const Trace& trace) {
  std::string text;
  write_trace_header(text);
  for (std::size_t i = 0; i < trace.executions.size(); ++i) {
    const Execution& execution = trace.executions[i];
    ContainerInfo container;
    container.path = std::to_string(i);
    const TraceRow* before = nullptr;
    for (const TraceRow& row : execution.rows) {
      TraceRecord record{.container = &container, .time = row.wall_time, .host = execution.host,
                         .original = execution.original, .sample = &row.sample,
                         .label = row.label, .label_detail = row.label_detail};
      if (before != nullptr) {
        record.previous = &before->sample;
        record.interval_seconds =
            std::chrono::duration<double>(row.time - before->time).count();
      }
      write_trace_row(text, record);
      before = &row;
    }
  }
  return text;
}

// A copy may have less: if the original names no host, the host's size is the largest use.
template <class Value>
void check_same_or_absent(const std::optional<Value>& value, const std::optional<Value>& copy) {
  CHECK_INVARIANT(!copy || value == copy);
}

// Compares the rows without their lines and columns.
void check_same(const Trace& trace, const Trace& other) {
  CHECK_INVARIANT(trace.executions.size() == other.executions.size());
  for (std::size_t i = 0; i < trace.executions.size(); ++i) {
    const Execution &a = trace.executions[i], &b = other.executions[i];
    CHECK_INVARIANT(a.rows.size() == b.rows.size());
    for (std::size_t row = 0; row < a.rows.size(); ++row) {
      const Sample &x = a.rows[row].sample, &y = b.rows[row].sample;
      check_same_or_absent(x.cpu.usage_usec, y.cpu.usage_usec);
      check_same_or_absent(x.memory.anon_bytes, y.memory.anon_bytes);
      check_same_or_absent(x.io.read_bytes, y.io.read_bytes);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const MemoryFile file;
  file.write(bytes, size);
  const Result<Trace> trace = read_trace(file.path(), kOptions);
  const Result<Trace> again = read_trace(file.path(), kOptions);
  CHECK_INVARIANT(trace.has_value() == again.has_value());
  if (!trace) {
    CHECK_INVARIANT(trace.error().text == again.error().text);
    check_refusal(trace.error(), file.path(), "");
    return 0;
  }
  CHECK_INVARIANT(trace->crc == again->crc);
  CHECK_INVARIANT(written(*trace) == written(*again));
  std::size_t rows = 0;
  for (const Execution& execution : trace->executions) {
    check_rows(execution);
    check_features(execution);
    rows += execution.rows.size();
  }
  CHECK_INVARIANT(rows <= kOptions.max_rows);
  file.write(written(*trace));
  const Result<Trace> copy = read_trace(file.path(), kOptions);
  CHECK_INVARIANT(copy.has_value());
  check_same(*trace, *copy);
  return 0;
}
