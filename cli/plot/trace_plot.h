// Executions of a trace as a picture: CPU and memory over time with their limits, and the phases
// below them.
#pragma once

#include <string>
#include <vector>

#include "model/trace.h"

namespace cgphase {

inline constexpr std::size_t kMostPlottedExecutions = 8;

struct PlottedExecution {
  const Execution* execution = nullptr;  // with at least one row
  std::vector<int> phases;               // per row: an index, or as of phase_lane.h
};

struct TracePlot {
  std::string kind = "Trace";  // what `source` names
  std::string source;       // the trace's name, not escaped
  std::string phase_source; // "phases of model M", "labels", not escaped
  std::vector<std::string> phase_names;  // by index, not escaped; "" where the letter is the name
  std::string unknown_name = "unknown phase";
  std::string nothing_name = "not enough history";
  std::vector<PlottedExecution> executions;  // at most kMostPlottedExecutions
  std::size_t total = 0;                     // how many the trace has
};

// The SVG. Its size is bounded whatever the number of rows: each line has two points per two pixels
// at most.
std::string draw_trace(const TracePlot& plot);

}  // namespace cgphase
