// The head of an HTTP request as lines: method, Host, Sec-Fetch-Site, and the rest, which is the
// target. A refusal is one printable line with a status from the list. An accepted request only
// reads, is addressed to this machine's name, and is also accepted on the socket.
#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "agent/config/http_address.h"
#include "agent/http/http_route.h"
#include "base/check.h"
#include "base/text.h"

using namespace cgphase;

namespace {

constexpr std::array<unsigned, 6> kStatuses = {400, 403, 404, 405, 413, 421};

std::string_view cut_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

void check_request(const Request& request) {
  const Verb verb = verb_of(request);
  CHECK_INVARIANT(!is_admin(verb) && verb != Verb::fit && verb != Verb::table);
  const Result<Request> again = parse_request(encode_request(request));
  CHECK_INVARIANT(again.has_value());
  CHECK_INVARIANT(encode_request(*again) == encode_request(request));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(bytes), size);
  HttpHead head;
  head.method = cut_line(rest);
  head.host = cut_line(rest);
  head.fetch_site = cut_line(rest);
  head.target = rest;
  const auto route = route_of(head);
  if (!route) {
    CHECK_INVARIANT(std::ranges::count(kStatuses, route.error().status) == 1);
    CHECK_INVARIANT(printable(route.error().text) == route.error().text);
    return 0;
  }
  CHECK_INVARIANT(head.method == "GET" || head.method == "HEAD");
  CHECK_INVARIANT(is_own_host(head.host));
  CHECK_INVARIANT(route->head_only == (head.method == "HEAD"));
  if (route->kind == HttpRoute::Kind::file) CHECK_INVARIANT(route->file.starts_with('/'));
  if (route->kind == HttpRoute::Kind::verb) check_request(route->request);
  return 0;
}
