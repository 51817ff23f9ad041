// Reads recorded telemetry in the trace format (docs/internals/trace-format.md) into the samples
// that the daemon would have seen, and writes samples.
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
// Limit for readers that keep data of every row in memory. Others need no limit.
inline constexpr std::size_t kMaxTraceRows = 4'000'000;
inline constexpr std::size_t kAnyTraceRows = std::numeric_limits<std::size_t>::max();
// If no column has the CPU limit, it is the median over at most this many rows of an execution.
inline constexpr std::size_t kMaxLimitRows = 4096;

struct TraceRow {
  MonotonicTime time;     // since the first row of the file
  WallTime wall_time;     // column timestamp
  std::uint64_t line = 0; // in the file, from 1
  Sample sample;          // counters are rebuilt; sample.limits are the limits of this row
  std::string label, label_detail;
  // The columns of TraceOptions::columns, in that order.
  std::vector<std::optional<double>> columns;
};

// The part that all rows of one pod.id share.
struct ExecutionHeader {
  std::string id, service;
  // Limits of the first row. The CPU limit may be derived (docs/internals/trace-format.md).
  Limits original;
  HostCapacity host;
  // True if the trace has the capacity of the host. Otherwise `host` is the largest use in the
  // execution. That serves as a scale if there is no limit, but it is not the capacity of a
  // machine.
  bool host_cores_told = true, host_memory_told = true;
};

// The rows of one pod.id, in file order. All samples of one execution have the same CgroupId {0,
// n}, where n counts executions from 1.
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
  std::vector<std::string> columns;  // numeric columns to keep in addition to the sample
  std::size_t max_rows = kMaxTraceRows;
};

// Reads the rows of a file one by one, in file order. Memory is needed for one row and a little per
// execution. If the first row of an execution lacks the CPU limit or the host
// (docs/internals/trace-format.md), the whole file is searched before that row is returned. The
// file is then read twice. Owned and used by one thread.
class TraceReader {
 public:
  // Reads the header. Errors: not_found, denied, io, and invalid with file, line, column and
  // reason.
  static Result<TraceReader> open(const std::string& path, const TraceOptions& options = {});
  TraceReader(TraceReader&& other) noexcept;
  TraceReader& operator=(TraceReader&& other) noexcept;
  ~TraceReader();

  // Reads the next row into `row`; false at the end. Errors as open().
  Result<bool> next(TraceRow& row);

  // The execution of the last row, and its index in order of first appearance, from 0. The
  // reference is valid until the next call of next().
  const ExecutionHeader& execution() const;
  std::size_t index() const;
  // All executions with a row so far, in that order.
  std::span<const ExecutionHeader> executions() const;

  const std::string& path() const;
  std::uint32_t crc() const;  // of the text read so far, as TraceSource::crc
  // Remarks for the user on how the file was interpreted, without the file's name, such as
  // "timestamps taken as milliseconds". Complete once all rows were read.
  std::vector<std::string> notes() const;
  // Call it once all rows were read. Invalid if there was no row, or if no row has a number in a
  // column of the format or a requested column.
  Status check_measured() const;
  // Reads the same file from its beginning, with the same options. Works for a pipe too.
  Result<TraceReader> again() const;

 private:
  class Impl;
  explicit TraceReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Calls `take` with each remaining row until it fails. Errors: those of TraceReader and of `take`.
Status read_rows(TraceReader& reader, const std::function<Status(const TraceRow&)>& take);

// Reads the remaining rows into memory. Errors as TraceReader.
Result<Trace> collect_rows(TraceReader& reader);

// Reads the whole file into memory. Errors as TraceReader.
Result<Trace> read_trace(const std::string& path, const TraceOptions& options = {});

// One row to write. `previous` is the sample of the same container before this one, null for the
// first. `interval_seconds` is the time between the two.
struct TraceRecord {
  const ContainerInfo* container = nullptr;
  WallTime time;
  HostCapacity host;
  Limits original;  // limits before cgphase changed any
  const Sample* sample = nullptr;
  const Sample* previous = nullptr;
  double interval_seconds = 0;
  std::optional<int> phase;  // as cgphase recognised it then; the label is the ground truth
  std::string_view label, label_detail;
};

// Append to `out`: one header, then one row per record. An absent value is an empty field.
void write_trace_header(std::string& out);
void write_trace_row(std::string& out, const TraceRecord& record);

}  // namespace cgphase
