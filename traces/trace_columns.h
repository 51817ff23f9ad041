// The table of trace columns that map to one field of a Sample. It drives the reader and the
// writer. Private to traces/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/sample.h"

namespace cgphase {

// The text for no limit, as in the kernel's files.
inline constexpr std::string_view kMaxWord = "max";

// The quantity that an integer field of a Sample counts. All but the first four are cumulative, as
// in the kernel.
enum class Quantity : std::uint8_t {
  memory,  // bytes of the host's memory
  other_bytes,
  tasks,
  flag,
  cpu_time,   // us, summed over all processors
  wall_time,  // us, of one clock
  traffic,    // bytes
  events
};
constexpr bool is_cumulative(Quantity quantity) { return quantity >= Quantity::cpu_time; }
// The largest plausible value. memory.stat shows a negative field as 2^64 minus its amount, which
// is larger.
std::uint64_t largest(Quantity quantity);

// An integer field of a Sample and its column name.
struct TraceColumn {
  std::string_view name;
  Quantity quantity;
  Counter (*get)(const Sample&);
  void (*set)(Sample&, std::uint64_t);
};

// A ratio of a Sample. It is at most `most`, which exceeds 1 for several GPUs.
struct TraceRatio {
  std::string_view name;
  double most;
  std::optional<double> (*get)(const Sample&);
  void (*set)(Sample&, double);
};

// The columns that are written, in order. Ratios follow the integers.
std::span<const TraceColumn> trace_columns();
std::span<const TraceRatio> trace_ratios();

// The columns to read from a file whose header has `names`. If a column is missing, a column of
// another tool with nearly the same meaning is used (docs/internals/trace-format.md).
std::vector<const TraceColumn*> columns_to_read(std::span<const std::string> names);

}  // namespace cgphase
