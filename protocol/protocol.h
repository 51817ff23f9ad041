// What is spoken on the two Unix sockets of the daemon (docs/internals/protocol.md): one request
// and one reply per connection, each a frame of a 4-byte big-endian length and that many bytes of
// JSON.
// Nothing on the wire is a command, a script or a file name; the verbs are a closed list. Pure, any
// thread; used by the daemon and by the command.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace cgphase {

inline constexpr int kSchema = 1;
inline constexpr std::size_t kFrameHeaderBytes = 4;
inline constexpr std::size_t kRequestLimitBytes = 64 * 1024;
inline constexpr std::size_t kReplyLimitBytes = 16 * 1024 * 1024;
inline constexpr int kJsonDepthLimit = 16;
inline constexpr std::size_t kTextArgumentLimitBytes = 8 * 1024;  // a path is at most 4096 bytes
inline constexpr double kNumberArgumentLimit = 9e9;  // seconds since the epoch, as ns in an int64

// Exit codes of the command, and what an error reply says in "exit". Scripts rely on them.
enum class Exit : int {
  ok = 0,
  failure = 1,
  usage = 2,
  no_container = 3,
  unreachable = 4,   // no daemon, or it does not answer
  denied = 5,
  invalid = 6,       // configuration or input invalid, or this host cannot do it
  not_met = 7,       // `fit`: does not fit; or nothing to do, where --exit-code is given
  assertion = 8,
};

// not_found and gone -> no_container, denied -> denied, invalid and unsupported -> invalid,
// io -> failure.
Exit exit_of(ErrorKind kind);

enum class Verb : std::uint8_t {
  status, list, show, explain, history, events,  // reading
  mode, pause, resume, restore,                  // acting: the admin socket only
  config,                                        // the configuration in force, with origins
  records,                                       // who is in the history
  learned, fit,                                  // what is known of the phases, and what may come
  table,                                         // the journal's tables, row by row
  model,                                         // acting: take the model that is installed now
  pin,                                           // acting: what a container's limits should be
};
inline constexpr int kVerbCount = 17;
const char* to_string(Verb verb);
bool is_admin(Verb verb);

// Arguments by verb; unknown ones are refused, and so is a missing required one:
//   show, pause, resume   container
//   explain               container, [at_seconds]
//   history               container or record, exactly one, [from_seconds], [until_seconds],
//                         [limit], [full], [rows]
//   events                [container], [from_seconds], [until_seconds], [limit], [before]
//   mode                  mode (or "default"), [container], [until_restart]
//   restore               container, or all=true, exactly one
//   pin                   container, and [cpus], [memory_mib], one at least; 0: as the policy says
//   records               [after]
//   learned               container or image, exactly one
//   fit                   cpus, memory_mib, seconds, [risk]
//   table                 name, [after]
// Times are seconds since the epoch; a container is text as find_container() takes it.
struct Request {
  Verb verb = Verb::status;
  nlohmann::json args = nlohmann::json::object();

  // The argument, where it was given. parse_request() has checked its type and bounds: a number
  // is from 0 to kNumberArgumentLimit.
  std::optional<std::string> text(const char* name) const;
  std::optional<double> number(const char* name) const;
  std::optional<WallTime> time(const char* name) const;
  // At most `most`; `absent` where it was not given.
  int count(const char* name, int absent, int most) const;
  bool flag(const char* name) const;
};

struct Reply {
  nlohmann::json body;  // {"schema":1, ...}; {"schema":1,"error":{"exit":N,"text":".."}} for errors
  Exit exit = Exit::ok;
  std::string error;    // empty when exit is ok
};

// JSON from a peer: within the depth limit, well-formed UTF-8, nothing behind it. Errors: invalid.
Result<nlohmann::json> parse_bounded_json(std::string_view text);

// The payload of a request frame. Errors: invalid, with text for the peer.
Result<Request> parse_request(std::string_view payload);
std::string encode_request(const Request& request);

// A request whose arguments came as text, as in a URL: numbers are decimal, flags true or false.
// Errors: invalid, as of parse_request(), and for an argument that is given twice.
struct TextArgument {
  std::string name, value;
};
Result<Request> request_of_texts(std::string_view verb, std::span<const TextArgument> arguments);

// `body` with "schema" set.
nlohmann::json ok_reply(nlohmann::json body);
nlohmann::json error_reply(Exit exit, std::string_view text);
nlohmann::json error_reply(const Error& error);

// The payload of a reply frame. Errors: invalid (not ours, or of another schema).
Result<Reply> parse_reply(std::string_view payload);

// Header and payload. Precondition: the payload is not above kReplyLimitBytes.
std::string encode_frame(std::string_view payload);
// The length that a header announces.
std::size_t frame_length(std::array<unsigned char, kFrameHeaderBytes> header);
// A reply as a frame; one above kReplyLimitBytes becomes an error reply that says so. Bytes that
// are no UTF-8 become U+FFFD: escape names before they come here.
std::string encode_reply_frame(const nlohmann::json& reply);

}  // namespace cgphase
