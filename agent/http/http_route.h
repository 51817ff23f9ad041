// What a request of HTTP asks for, judged by its head alone: one of the closed list of pages and of
// reading verbs, or why it is refused. Pure, any thread.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "protocol/requests.h"

namespace cgphase {

inline constexpr std::size_t kMaxQueryArguments = 8;

// Of the head of a request, as it came.
struct HttpHead {
  std::string_view method, target;
  std::string_view host;        // empty unless there is exactly one
  std::string_view fetch_site;  // Sec-Fetch-Site, where a browser says it
  bool has_body = false;
};

struct HttpRoute {
  enum class Kind : std::uint8_t { metrics, file, verb };
  Kind kind = Kind::file;
  bool head_only = false;
  std::string file = {};      // "/", "/page.js": a name of web_files.h, or none
  Request request = {};       // of a verb
};

struct HttpRefusal {
  unsigned status = 400;
  std::string text;  // printable
};

// GET and HEAD of /metrics, /api/v1/VERB?ARGUMENT=VALUE&... and whatever else, which is a file or
// nothing. Verbs are status, list, show, explain, history, events. Refused: other methods (405),
// bodies (413), a Host that is none or not this machine's (400, 421), what a page of another site
// asks for (403), and what the verb does not take (400, 404).
std::expected<HttpRoute, HttpRefusal> route_of(const HttpHead& head);

// "a=1&b=%2Fx": in its order, decoded. Errors: invalid.
Result<std::vector<TextArgument>> parse_query(std::string_view query);

}  // namespace cgphase
