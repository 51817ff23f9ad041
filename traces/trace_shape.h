// The format of one trace file, recognised from its first lines. Private to traces/.
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

// The number of rows that are examined before the first is read.
inline constexpr std::size_t kShapeRows = 256;

struct TraceShape {
  char separator = ',';
  std::uint64_t header_line = 0;          // rows begin after it
  std::string header;                     // text of that line
  std::vector<std::string> names;         // column names without blanks around them
  std::size_t leading = 0, trailing = 0;  // fields that only rows have: an index, empty ones
  bool blanks = false;                    // true if names, and so cells, have blanks around them
  TimeForm time = TimeForm::seconds;
  bool dated = false;       // its timestamps are dates, not the time since a start
  double step_seconds = 0;  // usual time between two rows of an execution; 0 = unknown
  NumberFormat numbers;
  std::vector<std::string> notes;  // remarks for the user

  // The index of the column with this name, in any case. `time` matches `timestamp`.
  std::optional<std::size_t> find(std::string_view name) const;
};

// The first few names, for a message.
std::string first_names(const std::vector<std::string>& names);

// Reads the beginning of the file. Errors: those of TextLines, and invalid with file and line. It
// is invalid if the header is missing, a name appears twice, or the unit of the timestamps is
// unclear.
Result<TraceShape> recognise_trace(TextLines& lines);

}  // namespace cgphase
