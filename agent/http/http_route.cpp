#include "agent/http/http_route.h"

#include <algorithm>
#include <array>

#include "agent/config/http_address.h"
#include "base/text.h"

namespace cgphase {
namespace {

constexpr std::string_view kApi = "/api/v1/";
constexpr std::size_t kShownBytes = 64;
// What only reads, and what a page or a script of a person asks; the rest is for the command.
constexpr std::array<Verb, 6> kVerbs = {Verb::status,  Verb::list,    Verb::show,
                                        Verb::explain, Verb::history, Verb::events};

std::unexpected<HttpRefusal> refuse(unsigned status, std::string text) {
  return std::unexpected(HttpRefusal{status, std::move(text)});
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<std::string> decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0)
      return failure(ErrorKind::invalid, "a % without two hexadecimal digits behind it");
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

// Cuts what stands before `end`, or all of it, off `rest`.
std::string_view cut(std::string_view& rest, char end) {
  const std::size_t at = std::min(rest.find(end), rest.size());
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return part;
}

std::expected<HttpRoute, HttpRefusal> verb_route(std::string_view name, std::string_view query) {
  const bool known = std::ranges::any_of(kVerbs, [&](Verb v) { return name == to_string(v); });
  if (!known)
    return refuse(404, "no '" + escape_name(name.substr(0, kShownBytes)) +
                           "' below /api/v1/; there are status, list, show, explain, history, "
                           "events");
  const auto arguments = parse_query(query);
  if (!arguments) return refuse(400, "request refused: " + arguments.error().text);
  Result<Request> request = request_of_texts(name, *arguments);
  if (!request) return refuse(400, request.error().text);
  return HttpRoute{.kind = HttpRoute::Kind::verb, .request = *std::move(request)};
}

std::expected<HttpRoute, HttpRefusal> target_route(std::string_view target) {
  if (!target.starts_with('/')) return refuse(400, "a target begins with /");
  const std::string_view path = cut(target, '?');
  const std::string_view query = target;
  if (path.starts_with(kApi)) return verb_route(path.substr(kApi.size()), query);
  if (path == "/metrics") return HttpRoute{.kind = HttpRoute::Kind::metrics};
  return HttpRoute{.kind = HttpRoute::Kind::file, .file = std::string(path)};
}

}  // namespace

Result<std::vector<TextArgument>> parse_query(std::string_view query) {
  std::vector<TextArgument> arguments;
  while (!query.empty()) {
    std::string_view pair = cut(query, '&');
    if (pair.empty()) continue;
    if (arguments.size() == kMaxQueryArguments)
      return failure(ErrorKind::invalid, "more than 8 arguments");
    const Result<std::string> name = decode(cut(pair, '='));
    if (!name) return std::unexpected(name.error());
    const Result<std::string> value = decode(pair);
    if (!value) return std::unexpected(value.error());
    arguments.push_back({*name, *value});
  }
  return arguments;
}

std::expected<HttpRoute, HttpRefusal> route_of(const HttpHead& head) {
  if (head.method != "GET" && head.method != "HEAD")
    return refuse(405, "only GET and HEAD: nothing is changed over HTTP");
  if (head.has_body) return refuse(413, "a question has no body");
  if (head.host.empty()) return refuse(400, "one Host header is needed");
  if (!is_own_host(head.host))
    return refuse(421, "this is served to localhost, 127.0.0.1 and [::1] alone");
  if (!head.fetch_site.empty() && head.fetch_site != "same-origin" && head.fetch_site != "none")
    return refuse(403, "another site's page may not ask");
  auto route = target_route(head.target);
  if (route) route->head_only = head.method == "HEAD";
  return route;
}

}  // namespace cgphase
