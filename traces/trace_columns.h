// The columns of the trace format that stand for one field of a Sample, as a table that drives the
// reader and the writer. Private to model/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/sample.h"

namespace cgphase {

// How a limit that is none is written, as in the kernel's files.
inline constexpr std::string_view kMaxWord = "max";

// What a whole number of a Sample counts; all but the first four are cumulative, as the kernel
// counts them.
enum class Quantity : std::uint8_t {
  memory,       // bytes of the host's memory
  other_bytes,
  tasks,
  flag,
  cpu_time,     // us, of all processors
  wall_time,    // us, of one clock
  traffic,      // bytes
  events
};
// Whether it is cumulative.
constexpr bool is_cumulative(Quantity quantity) { return quantity >= Quantity::cpu_time; }
// A larger value of it cannot be true: a field of memory.stat below zero reads as 2^64 less it.
std::uint64_t largest(Quantity quantity);

// A whole number of a Sample under its column name.
struct TraceColumn {
  std::string_view name;
  Quantity quantity;
  Counter (*get)(const Sample&);
  void (*set)(Sample&, std::uint64_t);
};

// A ratio of a Sample: at most `most`, for GPUs are several.
struct TraceRatio {
  std::string_view name;
  double most;
  std::optional<double> (*get)(const Sample&);
  void (*set)(Sample&, double);
};

// Those that are written, in that order; the ratios behind the whole numbers.
std::span<const TraceColumn> trace_columns();
std::span<const TraceRatio> trace_ratios();

// Those to read from a file whose header has `names`: of the table above the ones it has, and where
// one is not in it, a column of others that means nearly the same (docs/internals/trace-format.md).
std::vector<const TraceColumn*> columns_to_read(std::span<const std::string> names);

}  // namespace cgphase
