// The one place where verbs read traces: every verb accepts and refuses the same files, with the
// same words, and prints the same notes.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "traces/trace.h"

namespace cgphase {

// All rows of a reader at its beginning, as read_rows(). Fails with `invalid` where the file has no
// row, or nothing to measure. What a user must know of how the file was read goes to standard
// error, one line each; where the file is read again, call read_rows() for that.
Status read_trace_input(TraceReader& reader, const std::function<Status(const TraceRow&)>& take);

// The same, in memory.
Result<Trace> read_trace_input(const std::string& path, const TraceOptions& options);

}  // namespace cgphase
