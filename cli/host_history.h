// This host's own history as a trace (docs/trace_format.md): from the daemon that runs, or from the
// files of one that has stopped. For `record`, and to be replayed.
#pragma once

#include <cstddef>
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

namespace cgphase {

// What of the history is wanted, and where it lies.
struct HostHistory {
  std::string socket;                   // of the daemon, where `state_dir` is empty
  std::string state_dir;                // of a daemon that does not run
  std::vector<std::string> containers;  // names, ids (4 characters or more) or paths; none: all
  std::optional<WallTime> since, until;
  bool from_now = false;                // `since` was now: there is no earlier one to choose
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

// The trace in an unlinked temporary file, which TraceReader::open(trace.path) and read_trace()
// read as often as they like while this object lives.
struct HostTrace {
  Fd file;
  std::string path;  // /proc/self/fd/N
  HostTraceCounts counts;
};
std::expected<HostTrace, Complaint> host_trace(const HostHistory& wanted);

}  // namespace cgphase
