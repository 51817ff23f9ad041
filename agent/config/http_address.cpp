#include "agent/config/http_address.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "base/parse.h"

namespace cgphase {
namespace {

constexpr std::string_view kIp4 = "127.0.0.1", kIp6 = "[::1]";

std::optional<std::uint16_t> parse_port(std::string_view text) {
  const bool digits = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  const auto port = digits ? parse_u64(text) : std::nullopt;
  if (!port || *port == 0 || *port > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(*port);
}

Result<HttpAddress> parse_path(std::string_view text) {
  if (text.size() > kMaxSocketPathBytes)
    return failure(ErrorKind::invalid, "a socket's path has at most 107 bytes");
  if (text.find('\0') != std::string_view::npos)
    return failure(ErrorKind::invalid, "holds a NUL byte");
  if (text.ends_with('/')) return failure(ErrorKind::invalid, "names a directory");
  return HttpAddress{.path = std::string(text)};
}

}  // namespace

Result<HttpAddress> parse_http_address(std::string_view text) {
  if (text.starts_with('/')) return parse_path(text);
  for (const std::string_view host : {kIp4, kIp6}) {
    if (!text.starts_with(host) || text.substr(host.size(), 1) != ":") continue;
    if (const auto port = parse_port(text.substr(host.size() + 1)))
      return HttpAddress{.ip6 = host == kIp6, .port = *port};
  }
  return failure(ErrorKind::invalid,
                 "neither a path nor a port of this machine's loopback; to show it to others put a "
                 "web server that asks who they are before it");
}

std::string to_string(const HttpAddress& address) {
  if (!address.path.empty()) return address.path;
  return std::string(address.ip6 ? kIp6 : kIp4) + ":" + std::to_string(address.port);
}

bool is_own_host(std::string_view host) {
  std::string name(host.substr(0, 16));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const std::string_view own : {std::string_view("localhost"), kIp4, kIp6}) {
    if (!name.starts_with(own)) continue;
    const std::string_view rest = host.substr(own.size());
    return rest.empty() || (rest.front() == ':' && parse_port(rest.substr(1)));
  }
  return false;
}

}  // namespace cgphase
