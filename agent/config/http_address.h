// Where HTTP is served: a Unix socket, or a port of this machine's loopback. Nothing else, so that
// nobody offers it to a network by a line of configuration. Pure, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cgphase {

inline constexpr std::size_t kMaxSocketPathBytes = 107;  // sun_path, with its end

struct HttpAddress {
  std::string path;         // of a Unix socket; empty: a port
  bool ip6 = false;         // [::1], not 127.0.0.1
  std::uint16_t port = 0;
};

// "/run/cgphase/http.sock", "127.0.0.1:9275", "[::1]:9275". Errors: invalid.
Result<HttpAddress> parse_http_address(std::string_view text);
std::string to_string(const HttpAddress& address);

// Whether a Host header names this machine, with whatever port: "localhost", "127.0.0.1:9275",
// "[::1]". A page of another site whose name leads here (DNS rebinding) sends its own name.
bool is_own_host(std::string_view host);

}  // namespace cgphase
