// Reads this host's history, from a running daemon or from the files of a stopped one. `record` and
// `replay --host` write it as a trace (docs/internals/trace-format.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "cli/daemon_client.h"
#include "storage/history_point.h"
#include "storage/table_page.h"

namespace cgphase {

// The sentence for HostHistory::incomplete.
inline constexpr const char* kDamagedLeftOut =
    "part of the history is damaged and left out, up to 60 samples per block";

// What part of the history to read, and from where.
struct HostHistory {
  std::string socket;                   // socket of the daemon; used if `state_dir` is empty
  std::string state_dir;                // files of a stopped daemon
  std::vector<std::string> containers;  // names, ids (4 characters or more) or paths; empty: all
  std::optional<WallTime> since, until;
  bool from_now = false;                // `since` was now: the user cannot choose an earlier one
  // Called once, with a sentence, if part of a file is damaged.
  std::function<void(const std::string& sentence)> incomplete = {};
};

struct HostTraceCounts {
  std::size_t executions = 0, rows = 0;
};

// Passes the trace to `write` in pieces of about 100 KiB: first the header, then one container
// after the other. Each run of a container has its own pod.id.
//
// Complaints: those of ask_daemon; no_container (a named container is not in the history); invalid
// (nothing was recorded in that time, or `state_dir` is in use by a daemon or contains no history);
// those of `write`.
std::expected<HostTraceCounts, Complaint> write_host_trace(
    const HostHistory& wanted, const std::function<Status(std::string_view)>& write);

// Reads the whole history; `containers` is ignored. First the plain tables, page by page, each
// ending with a page without rows. Then the points from `since` to `until`, container by container,
// oldest first.
//
// Complaints: those of ask_daemon; invalid (`state_dir` is in use by a daemon or contains no
// history); failure (inconsistent replies); those of the reader.
struct HostHistoryReader {
  std::function<Status(const std::string& table, const TablePage& page)> table;
  std::function<Status(std::int64_t container, const HistoryPoint& point)> point;
};
std::expected<void, Complaint> read_host_history(const HostHistory& wanted,
                                                 const HostHistoryReader& reader);

// The trace in an unlinked temporary file. While this object lives, TraceReader::open(trace.path)
// and read_trace() can read it any number of times.
struct HostTrace {
  Fd file;
  std::string path;  // /proc/self/fd/N
  HostTraceCounts counts;
};
std::expected<HostTrace, Complaint> host_trace(const HostHistory& wanted);

}  // namespace cgphase
