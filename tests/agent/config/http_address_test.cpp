#include "agent/config/http_address.h"

#include <doctest/doctest.h>

using namespace cgphase;

TEST_CASE("HTTP is served at a path or at a port of the loopback") {
  CHECK(parse_http_address("/run/cgphase/http.sock").value().path == "/run/cgphase/http.sock");
  const HttpAddress four = parse_http_address("127.0.0.1:9275").value();
  CHECK(four.port == 9275);
  CHECK_FALSE(four.ip6);
  const HttpAddress six = parse_http_address("[::1]:65535").value();
  CHECK(six.port == 65535);
  CHECK(six.ip6);
  for (const char* text : {"/a", "127.0.0.1:1", "[::1]:80"})
    CHECK(to_string(parse_http_address(text).value()) == text);
}

TEST_CASE("HTTP is refused at an address that others could reach, and what is none") {
  for (const char* text :
       {"", "0.0.0.0:80", "[::]:80", "192.168.0.1:80", "127.0.0.2:80", "localhost:80", ":80", "80",
        "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:80x",
        "127.0.0.1: 80", "127.0.0.1:+80", "[::1]80", "run/x", "/run/", "@abstract"})
    CHECK_MESSAGE(!parse_http_address(text), text);
}

TEST_CASE("a path of HTTP is taken at its bound and refused one past it") {
  CHECK(parse_http_address("/" + std::string(kMaxSocketPathBytes - 1, 'a')));
  CHECK_FALSE(parse_http_address("/" + std::string(kMaxSocketPathBytes, 'a')));
}

TEST_CASE("a Host is this machine's with whatever port, and no other name is") {
  for (const char* host : {"localhost", "LocalHost:8080", "127.0.0.1", "127.0.0.1:9275", "[::1]",
                           "[::1]:1"})
    CHECK_MESSAGE(is_own_host(host), host);
  for (const char* host :
       {"", "evil.example", "localhost.evil.example", "localhost:", "localhost:0", "localhost:x",
        "127.0.0.1.evil.example", "127.0.0.11", "[::1", "::1", "evil@localhost", "localhost:80:80",
        "localhost@evil", "localhost:80/"})
    CHECK_FALSE_MESSAGE(is_own_host(host), host);
}
