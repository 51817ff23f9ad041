// Reads traces for all verbs, so that every verb accepts and refuses the same files with the same
// messages.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "traces/trace.h"

namespace cgphase {

// Reads all rows, like read_rows(); the reader must be at its beginning. Prints notes on how the
// file was read to standard error, one line each. To read a file a second time without notes, use
// read_rows(). Errors: those of read_rows(); invalid, if the file has no rows or nothing measured.
Status read_trace_input(TraceReader& reader, const std::function<Status(const TraceRow&)>& take);

// Like the above, but returns the trace in memory.
Result<Trace> read_trace_input(const std::string& path, const TraceOptions& options);

}  // namespace cgphase
