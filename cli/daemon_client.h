// Client of the daemon's sockets: one request, one reply, one deadline for both.
#pragma once

#include <chrono>
#include <expected>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "protocol/protocol.h"
#include "protocol/report.h"
#include "protocol/requests.h"

namespace cgphase {

// Why a verb failed: an exit code and one line of text.
struct Complaint {
  Exit exit = Exit::failure;
  std::string text;
};

inline constexpr std::chrono::milliseconds kDaemonLimit{10'000};

// Sends `request` and returns the body of the reply. Blocks for at most `limit`.
//
// Complaints: unreachable (no socket, no listener, no reply in time), denied (by file mode or by
// the daemon), the exit code of an error reply, failure (a reply that cannot be parsed).
std::expected<nlohmann::json, Complaint> ask_daemon(const std::string& socket_path,
                                                    const Request& request,
                                                    std::chrono::milliseconds limit = kDaemonLimit);

// Like ask_daemon(), and reads the reply into its struct: StatusReport, ListReply, ActionReport,
// HistoryReply, ConfigReply or LearnedReply.
template <class Reply>
std::expected<Reply, Complaint> ask_for(const std::string& socket_path, const Request& request);

}  // namespace cgphase
