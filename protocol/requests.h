// Requests on the daemon's sockets (docs/internals/protocol.md): one struct per verb, and one
// parser and one formatter for all. A request contains no command, no script and no file name, and
// the verbs are a closed list. Pure, any thread; used by the daemon and by the command.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "base/result.h"

namespace cgphase {

inline constexpr std::size_t kRequestLimitBytes = 64 * 1024;
inline constexpr std::size_t kTextArgumentLimitBytes = 8 * 1024;  // a path is at most 4096 bytes
inline constexpr double kNumberArgumentLimit = 9e9;  // seconds since the epoch, as ns in an int64

// The members are the arguments, under the names that they have in JSON. A plain text or number is
// required; an optional one and a flag are not. Times are seconds since the epoch. A container is
// text as find_container() takes it.
struct StatusRequest {};
struct ListRequest {};
struct ShowRequest {
  std::string container = {};
};
struct ExplainRequest {
  std::string container = {};
  std::optional<double> at_seconds = {};
};
struct HistoryRequest {
  std::optional<std::string> container = {};  // exactly one of container and record
  std::optional<std::int64_t> record = {};
  std::optional<double> from_seconds = {}, until_seconds = {};
  std::optional<std::int64_t> limit = {};
  bool full = false;  // every column that storage has
  bool rows = false;  // of a record: points as for a container
};
struct EventsRequest {
  std::optional<std::string> container = {};
  std::optional<double> from_seconds = {}, until_seconds = {};
  std::optional<std::int64_t> limit = {};
  std::optional<std::string> before = {};  // "earlier" of a reply
};
struct SetModeRequest {
  std::string mode = {};  // a mode, or "default"
  std::optional<std::string> container = {};  // absent: the host
  bool until_restart = false;
};
struct PauseRequest {
  std::string container = {};
};
struct ResumeRequest {
  std::string container = {};
};
struct RestoreRequest {
  std::optional<std::string> container = {};  // exactly one of container and all
  bool all = false;
};
struct ConfigRequest {};
struct RecordsRequest {
  std::optional<std::int64_t> after = {};  // the last record of the page before
};
struct LearnedRequest {
  std::optional<std::string> container = {}, image = {};  // exactly one
};
struct FitRequest {
  double cpus = 0, memory_mib = 0;
  std::int64_t seconds = 0;
  std::optional<double> risk = {};
};
struct TableRequest {
  std::string name = {};
  std::optional<std::int64_t> after = {};  // the last row of the page before
};
struct ModelRequest {};  // the daemon takes the model that is installed now
struct PinRequest {
  std::string container = {};
  std::optional<double> cpus = {}, memory_mib = {};  // at least one; 0 removes the pin
};

// In the order of Verb.
using Request = std::variant<StatusRequest, ListRequest, ShowRequest, ExplainRequest,
                             HistoryRequest, EventsRequest, SetModeRequest, PauseRequest,
                             ResumeRequest, RestoreRequest, ConfigRequest, RecordsRequest,
                             LearnedRequest, FitRequest, TableRequest, ModelRequest, PinRequest>;
enum class Verb : std::uint8_t {
  status, list, show, explain, history, events, mode, pause, resume, restore, config, records,
  learned, fit, table, model, pin,
};
inline constexpr int kVerbCount = std::variant_size_v<Request>;
inline Verb verb_of(const Request& request) { return static_cast<Verb>(request.index()); }
const char* to_string(Verb verb);
// Verbs that change something. The daemon takes them only on the admin socket.
bool is_admin(Verb verb);

// Parses the payload of a request frame. Errors: invalid, with text for the peer (unknown keys,
// verbs and arguments, missing arguments, wrong types, sizes and combinations).
Result<Request> parse_request(std::string_view payload);
std::string encode_request(const Request& request);
// Formats the arguments alone, for a log: {"container":"web-1"}.
std::string encode_arguments(const Request& request);

// Parses a request whose arguments are text, as in a URL: numbers are decimal, flags true or false.
// Errors: those of parse_request(), and invalid for an argument that is given twice.
struct TextArgument {
  std::string name, value;
};
Result<Request> request_of_texts(std::string_view verb, std::span<const TextArgument> arguments);

// Returns the time of an argument; nothing if the argument is absent.
std::optional<WallTime> time_of(const std::optional<double>& seconds);
// Returns the limit, at most `most`; `absent` if the request has none.
int bounded(const std::optional<std::int64_t>& limit, int absent, int most);

}  // namespace cgphase
