// Reads the input of a replay from files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/replay/replay.h"

namespace cgphase {

struct RecordedPaths {
  std::vector<std::string> traces, training;
  std::string model;                        // empty: none
  std::optional<std::string> compat_model;  // imported from AI4DL
};

struct Recorded {
  ReplayInput input;
  std::vector<TraceSource> traces, training;
  std::optional<std::uint32_t> model_crc, compat_model_crc;  // CRC-32C of the files
  double cadence_seconds = 1;  // of the first execution
  double played_seconds = 0;   // of all executions together
};

// Reads everything into memory, at most kMaxTraceRows rows. Errors: those of the files; invalid, if
// no trace has a row, or an execution of one name and time is both replayed and learned from.
Result<Recorded> read_recorded(const RecordedPaths& paths);

}  // namespace cgphase
