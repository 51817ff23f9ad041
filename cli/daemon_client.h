// The command's end of the daemon's sockets: one request, one reply, a deadline on the whole.
#pragma once

#include <chrono>
#include <expected>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "protocol/protocol.h"

namespace cgphase {

// Why a verb failed: its exit code and one line for people.
struct Complaint {
  Exit exit = Exit::failure;
  std::string text;
};

inline constexpr std::chrono::milliseconds kDaemonLimit{10'000};

// The reply's body. Complaints: unreachable (no socket, nobody listening, no answer in time),
// denied (file modes, or the daemon says so), what an error reply carries, failure (a reply that
// is not ours).
std::expected<nlohmann::json, Complaint> ask_daemon(const std::string& socket_path,
                                                    const Request& request,
                                                    std::chrono::milliseconds limit = kDaemonLimit);

}  // namespace cgphase
