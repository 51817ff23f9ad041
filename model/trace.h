// Recorded telemetry in the trace format (docs/trace_format.md): reading it into the samples that
// the daemon would have seen, and writing samples down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "collectors/containers/container_info.h"
#include "collectors/sample.h"

namespace cgphase {

inline constexpr std::size_t kMaxTraceColumns = 512;
inline constexpr std::size_t kMaxTraceRows = 4'000'000;

struct TraceRow {
  MonotonicTime time;     // since the first row of the file
  WallTime wall_time;     // column timestamp
  std::uint64_t line = 0; // in the file, from 1
  Sample sample;          // counters rebuilt; sample.limits are those of the row
  std::string label, label_detail;
  std::vector<std::optional<double>> columns;  // those asked for, in that order
};

// The rows of one pod.id, in file order. All of a trace's samples of one execution carry the same
// CgroupId {0, n}, n counting executions from 1.
struct Execution {
  std::string id, service;
  Limits original;     // of the first row; the CPU limit may be derived (docs/trace_format.md)
  HostCapacity host;
  std::vector<TraceRow> rows;
};

struct Trace {
  std::string path;
  std::uint32_t crc = 0;  // CRC-32C of the uncompressed text
  std::vector<Execution> executions;
};

struct TraceOptions {
  std::vector<std::string> columns;        // numeric columns to keep beside the sample
  std::size_t max_rows = kMaxTraceRows;
};

// The whole file, read as a stream. Errors: not_found, denied, io, and invalid naming file, line,
// column and reason.
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
  std::string_view label, label_detail;
};

// Append to `out`; one header, then one row per record. An absent value is an empty field.
void write_trace_header(std::string& out);
void write_trace_row(std::string& out, const TraceRecord& record);

}  // namespace cgphase
