// The columns of the trace format that stand for one field of a Sample, as a table that drives the
// reader and the writer. Private to model/.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "collectors/sample.h"

namespace cgphase {

// A whole number of a Sample under its column name; cumulative counters as the kernel counts them.
struct TraceColumn {
  std::string_view name;
  Counter (*get)(const Sample&);
  void (*set)(Sample&, std::uint64_t);
};

std::span<const TraceColumn> trace_columns();

}  // namespace cgphase
