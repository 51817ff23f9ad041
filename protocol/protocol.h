// Frames and replies on the daemon's two Unix sockets (docs/internals/protocol.md). A connection
// carries one request (protocol/requests.h) and one reply. Each is a frame: a length of 4 bytes,
// big-endian, and that many bytes of JSON. Pure, any thread; used by the daemon and by the command.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cgphase {

inline constexpr int kSchema = 2;
// The command reads replies from here on: an upgrade may leave the old daemon running for a while.
inline constexpr int kOldestSchema = 1;
inline constexpr std::size_t kFrameHeaderBytes = 4;
inline constexpr std::size_t kReplyLimitBytes = 16 * 1024 * 1024;
inline constexpr int kJsonDepthLimit = 16;

// Exit codes of the command, also "exit" of an error reply. Scripts rely on them.
enum class Exit : int {
  ok = 0,
  failure = 1,
  usage = 2,
  no_container = 3,
  unreachable = 4,   // no daemon, or it does not answer
  denied = 5,
  invalid = 6,       // configuration or input invalid, or not possible on this host
  not_met = 7,       // `fit`: does not fit; with --exit-code: nothing to do
  assertion = 8,
};

// not_found and gone -> no_container, denied -> denied, invalid and unsupported -> invalid,
// io -> failure.
Exit exit_of(ErrorKind kind);

struct Reply {
  nlohmann::json body;  // {"schema":2, ...}; {"schema":2,"error":{"exit":N,"text":".."}} for errors
  Exit exit = Exit::ok;
  std::string error;    // empty when exit is ok
};

// Parses JSON from a peer: within the depth limit, valid UTF-8, nothing after it. Errors: invalid.
Result<nlohmann::json> parse_bounded_json(std::string_view text);

// Returns `body` with "schema" set.
nlohmann::json ok_reply(nlohmann::json body);
nlohmann::json error_reply(Exit exit, std::string_view text);
nlohmann::json error_reply(const Error& error);

// Parses the payload of a reply frame. Errors: invalid (not a reply, or of another schema).
Result<Reply> parse_reply(std::string_view payload);

// Returns header and payload. Precondition: the payload has at most kReplyLimitBytes.
std::string encode_frame(std::string_view payload);
// Returns the length in a header.
std::size_t frame_length(std::array<unsigned char, kFrameHeaderBytes> header);
// Returns a reply as a frame. A reply above kReplyLimitBytes becomes an error reply. Bytes that are
// not UTF-8 become U+FFFD, so escape names before.
std::string encode_reply_frame(const nlohmann::json& reply);

}  // namespace cgphase
