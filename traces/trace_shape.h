// How one file writes a trace: what its first lines tell of it. Private to model/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "traces/text_lines.h"
#include "traces/trace_cell.h"
#include "traces/trace_time.h"

namespace cgphase {

// So many rows are looked at before the first is read.
inline constexpr std::size_t kShapeRows = 256;

struct TraceShape {
  char separator = ',';
  std::uint64_t header_line = 0;     // rows begin behind it
  std::string header;                // that line
  std::vector<std::string> names;    // without blanks around them
  std::size_t leading = 0, trailing = 0;  // fields that only rows have: an index, empty ones
  bool blanks = false;               // around names, and so around cells
  TimeForm time = TimeForm::seconds;
  bool dated = false;                // its numbers are dates, not the time since a start
  double step_seconds = 0;           // usual distance of two rows of an execution; 0 = unknown
  NumberFormat numbers;
  std::vector<std::string> notes;    // what a user must know of this: sentences

  // The column of this name, in any case; `time` stands for `timestamp`.
  std::optional<std::size_t> find(std::string_view name) const;
};

// The first of some names, for a message.
std::string first_names(const std::vector<std::string>& names);

// Reads the beginning of the file. Errors: those of TextLines; invalid naming file and line, where
// there is no header, where a name appears twice, and where the unit of the timestamps is unclear.
Result<TraceShape> recognise_trace(TextLines& lines);

}  // namespace cgphase
