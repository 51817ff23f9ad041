// The columns of the trace format that stand for one field of a Sample, as a table that drives the
// reader and the writer. Private to model/.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/sample.h"

namespace cgphase {

// What a limit that is none is written as, as in the kernel's files.
inline constexpr std::string_view kMaxWord = "max";

// The largest whole number that is read, and so that is written.
inline constexpr std::uint64_t kMostTraceNumber = 9'200'000'000'000'000'000U;

// A whole number of a Sample under its column name; cumulative counters as the kernel counts them.
struct TraceColumn {
  std::string_view name;
  Counter (*get)(const Sample&);
  void (*set)(Sample&, std::uint64_t);
};

// A ratio of a Sample: 0..1, of GPUs one for each.
struct TraceRatio {
  std::string_view name;
  std::optional<double> (*get)(const Sample&);
  void (*set)(Sample&, double);
};

// Those that are written, in that order; the ratios behind the whole numbers.
std::span<const TraceColumn> trace_columns();
std::span<const TraceRatio> trace_ratios();

// Those to read from a file whose header has `names`: of the table above the ones it has, and where
// one is not in it, a column of others that means nearly the same (docs/trace_format.md).
std::vector<const TraceColumn*> columns_to_read(std::span<const std::string> names);

}  // namespace cgphase
