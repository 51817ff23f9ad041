// Recorded telemetry in the trace format (docs/internals/trace-format.md): reading it into the
// samples that the daemon would have seen, and writing samples down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "collectors/containers/container_info.h"
#include "collectors/sample.h"

namespace cgphase {

inline constexpr std::size_t kMaxTraceColumns = 512;
inline constexpr std::size_t kMaxTraceExecutions = 65'536;
// Of who keeps something of every row in memory; who does not needs no bound.
inline constexpr std::size_t kMaxTraceRows = 4'000'000;
inline constexpr std::size_t kAnyTraceRows = std::numeric_limits<std::size_t>::max();
// A CPU limit that no column tells is the median of so many rows of an execution at most.
inline constexpr std::size_t kMaxLimitRows = 4096;

struct TraceRow {
  MonotonicTime time;     // since the first row of the file
  WallTime wall_time;     // column timestamp
  std::uint64_t line = 0; // in the file, from 1
  Sample sample;          // counters rebuilt; sample.limits are those of the row
  std::string label, label_detail;
  std::vector<std::optional<double>> columns;  // those asked for, in that order
};

// What the rows of one pod.id have in common.
struct ExecutionHeader {
  std::string id, service;
  // Of the first row; the CPU limit may be derived (docs/internals/trace-format.md).
  Limits original;
  HostCapacity host;
  // Where no row tells it, `host` is the largest use in the execution: enough to measure by where
  // there is no limit, and nothing that a machine could be filled up to.
  bool host_cores_told = true, host_memory_told = true;
};

// The rows of one pod.id, in file order. All of a trace's samples of one execution carry the same
// CgroupId {0, n}, n counting executions from 1.
struct Execution : ExecutionHeader {
  std::vector<TraceRow> rows;
};

struct TraceSource {
  std::string path;
  std::uint32_t crc = 0;  // CRC-32C of the uncompressed text
};

struct Trace : TraceSource {
  std::vector<Execution> executions;
};

struct TraceOptions {
  std::vector<std::string> columns;        // numeric columns to keep beside the sample
  std::size_t max_rows = kMaxTraceRows;
};

// The rows of a file one by one, in file order: memory for one row, and some for each execution.
// What the first row of an execution does not tell (the CPU limit, the host:
// docs/internals/trace-format.md) is looked for in all of the file before that row is handed out;
// the file is then read twice. Owned and used by one thread.
class TraceReader {
 public:
  // Reads the header. Errors: not_found, denied, io, and invalid naming file, line, column and
  // reason.
  static Result<TraceReader> open(const std::string& path, const TraceOptions& options = {});
  TraceReader(TraceReader&& other) noexcept;
  TraceReader& operator=(TraceReader&& other) noexcept;
  ~TraceReader();

  // The next row, in place of what `row` held; false at the end. Errors as of open().
  Result<bool> next(TraceRow& row);

  // The execution of the row last read, and its place in the order of first appearance, from 0.
  // Valid until the next call of next().
  const ExecutionHeader& execution() const;
  std::size_t index() const;
  // All that had a row so far, in that order.
  std::span<const ExecutionHeader> executions() const;

  const std::string& path() const;
  std::uint32_t crc() const;  // of what was read so far, as TraceSource::crc
  // How the file was read so far, where a user must know it: sentences without the file's name,
  // such as "timestamps taken as milliseconds". Complete once all rows were read.
  std::vector<std::string> notes() const;
  // Once all rows were read: invalid where there was none, or none with a number of the format or
  // in a column asked for.
  Status check_measured() const;
  // The same file from its beginning, with the same options; also where it came through a pipe.
  Result<TraceReader> again() const;

 private:
  class Impl;
  explicit TraceReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// All rows that are left, one after the other, until `take` fails. Errors as of TraceReader, and of
// `take`.
Status read_rows(TraceReader& reader, const std::function<Status(const TraceRow&)>& take);

// The same, in memory. Errors as of TraceReader.
Result<Trace> collect_rows(TraceReader& reader);

// The whole file in memory. Errors as of TraceReader.
Result<Trace> read_trace(const std::string& path, const TraceOptions& options = {});

// One row to write. `previous` is the reading of the same container before this one, null for the
// first; `interval_seconds` lies between the two.
struct TraceRecord {
  const ContainerInfo* container = nullptr;
  WallTime time;
  HostCapacity host;
  Limits original;  // before cgphase changed any
  const Sample* sample = nullptr;
  const Sample* previous = nullptr;
  double interval_seconds = 0;
  std::optional<int> phase;   // as cgphase recognised it then; the label is the truth
  std::string_view label, label_detail;
};

// Append to `out`; one header, then one row per record. An absent value is an empty field.
void write_trace_header(std::string& out);
void write_trace_row(std::string& out, const TraceRecord& record);

}  // namespace cgphase
