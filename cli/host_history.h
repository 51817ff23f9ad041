// This host's own history as a trace (docs/internals/trace-format.md): from the daemon that
// runs, or from the files of one that has stopped. For `record`, and to be replayed.
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

// What `incomplete` is told, below.
inline constexpr const char* kDamagedLeftOut =
    "some of the history is damaged and left out, up to 60 samples for each block";
std::string memory_alone(const std::string& why);

// What of the history is wanted, and where it lies.
struct HostHistory {
  std::string socket;                   // of the daemon, where `state_dir` is empty
  std::string state_dir;                // of a daemon that does not run
  std::vector<std::string> containers;  // names, ids (4 characters or more) or paths; none: all
  std::optional<WallTime> since, until;
  bool from_now = false;                // `since` was now: there is no earlier one to choose
  // Told once, in a sentence, where some of it cannot be had: the daemon can read only what it has
  // in memory, or some of the files is damaged.
  std::function<void(const std::string& sentence)> incomplete = {};
};

struct HostTraceCounts {
  std::size_t executions = 0, rows = 0;
};

// Hands the trace to `write` piece by piece, at most some 100 KiB at a time; header first, then one
// container after the other, each run of it under a pod.id of its own. Complaints: those of
// ask_daemon; no_container (one that is named is not in the history), invalid (nothing was recorded
// in that time; a state_dir that a daemon has in use or that holds no history), and of `write`.
std::expected<HostTraceCounts, Complaint> write_host_trace(
    const HostHistory& wanted, const std::function<Status(std::string_view)>& write);

// Takes all of it, whatever `containers` says: first the plain tables, page by page, of each at the
// end a page without rows; then the points from `since` to `until`, container by container, oldest
// first. Complaints: those of ask_daemon; invalid (a state_dir that a daemon has in use or that
// holds no history), failure (answers that contradict themselves), and of the reader.
struct HostHistoryReader {
  std::function<Status(const std::string& table, const TablePage& page)> table;
  std::function<Status(std::int64_t container, const HistoryPoint& point)> point;
};
std::expected<void, Complaint> read_host_history(const HostHistory& wanted,
                                                 const HostHistoryReader& reader);

// The trace in an unlinked temporary file, which TraceReader::open(trace.path) and read_trace()
// read as often as they like while this object lives.
struct HostTrace {
  Fd file;
  std::string path;  // /proc/self/fd/N
  HostTraceCounts counts;
};
std::expected<HostTrace, Complaint> host_trace(const HostHistory& wanted);

}  // namespace cgphase
