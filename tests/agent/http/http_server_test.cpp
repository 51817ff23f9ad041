#include "agent/http/http_server.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <utility>  // before Asio 1.74, which uses std::exchange without it

#include <boost/asio/io_context.hpp>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "base/fd.h"
#include "tests/agent/temporary_directory.h"

using namespace cgphase;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

constexpr const char* kGet = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

// A client in the test's own thread: never blocks; the test turns the server's loop between calls.
class HttpClient {
 public:
  explicit HttpClient(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    REQUIRE(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }

  void send(const std::string& bytes) const {
    CHECK(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(bytes.size()));
  }
  void leave() { socket_.reset(); }
  // Takes what is there. True when the server has ended the connection.
  bool ended() {
    char buffer[65536];
    for (;;) {
      const ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, 0);
      if (got == 0 || (got < 0 && errno != EAGAIN)) return true;
      if (got < 0) return false;
      received.append(buffer, static_cast<std::size_t>(got));
    }
  }
  int status() const { return received.empty() ? 0 : std::stoi(received.substr(9, 3)); }
  std::string body() const {
    const std::size_t end = received.find("\r\n\r\n");
    return end == std::string::npos ? "" : received.substr(end + 4);
  }
  bool has_header(const std::string& line) const {
    return received.find("\r\n" + line + "\r\n") != std::string::npos;
  }

  std::string received;

 private:
  Fd socket_;
};

HttpServer::Options own() {
  HttpServer::Options options;
  options.access.own_uid = ::geteuid();
  return options;
}

// A server in a directory of its own whose answers the test gives.
struct HttpWorld {
  explicit HttpWorld(HttpServer::Options asked = own()) : options(std::move(asked)) {
    std::vector<HttpSocket> sockets;
    auto socket = open_http_socket({.path = path()}, std::nullopt);
    REQUIRE_MESSAGE(socket, socket.error().text);
    sockets.push_back(*std::move(socket));
    server.emplace(io, std::move(sockets), options,
                   [this](const HttpRoute& route, HttpServer::Respond respond) {
                     routes.push_back(route);
                     if (on_request) return on_request(respond);
                     respond({.type = "text/plain",
                              .body = std::make_shared<const std::string>("hello\n")});
                   });
  }

  std::string path() const { return tmp / "http.sock"; }
  void run_until_end(HttpClient& client) {
    while (!client.ended()) io.run_one();
  }
  HttpClient ask(const std::string& request) {
    HttpClient client(path());
    client.send(request);
    run_until_end(client);
    return client;
  }

  TemporaryDirectory tmp;
  boost::asio::io_context io;
  HttpServer::Options options;
  std::function<void(HttpServer::Respond)> on_request;
  std::vector<HttpRoute> routes;
  std::optional<HttpServer> server;
};

HttpServer::Options hurried() {
  HttpServer::Options options = own();
  options.request_limit = options.answer_limit = options.reply_limit = 5ms;
  return options;
}

std::string head_of_bytes(std::size_t bytes) {
  const std::string begin = "GET / HTTP/1.1\r\nHost: localhost\r\nX: ", end = "\r\n\r\n";
  return begin + std::string(bytes - begin.size() - end.size(), 'x') + end;
}

}  // namespace

TEST_CASE("a request of HTTP is answered and the connection ends") {
  HttpWorld world;
  const HttpClient client = world.ask(kGet);
  CHECK(client.status() == 200);
  CHECK(client.body() == "hello\n");
  CHECK(client.has_header("Content-Type: text/plain"));
  CHECK(client.has_header("Content-Length: 6"));
  CHECK(client.has_header("Connection: close"));
  REQUIRE(world.routes.size() == 1);
  CHECK(world.routes[0].kind == HttpRoute::Kind::metrics);
}

TEST_CASE("every reply of HTTP has the headers that keep other sites out, and none that lets in") {
  HttpWorld world;
  for (const std::string& request : {std::string(kGet), std::string("POST / HTTP/1.1\r\n\r\n")}) {
    const HttpClient client = world.ask(request);
    CHECK(client.received.find("Content-Security-Policy: default-src 'none'; script-src 'self';") !=
          std::string::npos);
    CHECK(client.received.find("unsafe") == std::string::npos);
    CHECK(client.received.find("Access-Control") == std::string::npos);
    CHECK(client.has_header("X-Content-Type-Options: nosniff"));
    CHECK(client.has_header("Cross-Origin-Resource-Policy: same-origin"));
    CHECK(client.has_header("Cache-Control: no-store"));
  }
}

TEST_CASE("HEAD has the head of GET and no body") {
  HttpWorld world;
  const HttpClient client = world.ask("HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(client.status() == 200);
  CHECK(client.has_header("Content-Length: 6"));
  CHECK(client.body().empty());
}

TEST_CASE("what is refused never reaches who answers") {
  HttpWorld world;
  CHECK(world.ask("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc")
            .status() == 405);
  CHECK(world.ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc")
            .status() == 413);
  CHECK(world.ask("GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
            .status() == 413);
  CHECK(world.ask("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").status() == 421);
  CHECK(world.ask("GET / HTTP/1.1\r\n\r\n").status() == 400);
  CHECK(world.ask("GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n").status() == 400);
  CHECK(world.ask("GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n\r\n")
            .status() == 403);
  CHECK(world.ask("nonsense\r\n\r\n").status() == 400);
  CHECK(world.routes.empty());
  const HttpClient refused = world.ask("PUT / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(refused.has_header("Allow: GET, HEAD"));
  const json body = json::parse(refused.body());
  CHECK(body["schema"] == 2);
  CHECK(body["error"]["exit"] == 6);
}

TEST_CASE("the head of a request is taken at its bound and refused one byte past it") {
  HttpWorld world;
  CHECK(world.ask(head_of_bytes(kHttpHeadLimitBytes)).status() == 200);
  CHECK(world.ask(head_of_bytes(kHttpHeadLimitBytes + 1)).status() == 431);
  CHECK(world.ask(head_of_bytes(4 * kHttpHeadLimitBytes)).status() == 431);
  CHECK(world.ask("GET /" + std::string(4 * kHttpHeadLimitBytes, 'x')).status() == 431);
  CHECK(world.ask("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999\r\n\r\n")
            .status() == 413);
}

TEST_CASE("a client that sends an incomplete head gets an error and is closed") {
  HttpWorld world(hurried());
  HttpClient client(world.path());
  client.send("GET /metrics HT");
  world.run_until_end(client);
  CHECK(client.status() == 408);
}

TEST_CASE("a client that takes no reply is let go") {
  HttpWorld world(hurried());
  world.on_request = [](const HttpServer::Respond& respond) {
    respond({.body = std::make_shared<const std::string>(8 << 20, 'x')});
  };
  HttpClient client(world.path());
  client.send(kGet);
  const auto end = std::chrono::steady_clock::now() + 10s;
  do world.io.run_one_for(10ms);
  while ((world.routes.empty() || world.server->client_count() > 0) &&
         std::chrono::steady_clock::now() < end);
  CHECK(world.server->client_count() == 0);
}

TEST_CASE("an answer of HTTP that never comes, or fails, is an error reply") {
  HttpWorld world(hurried());
  world.on_request = [](const HttpServer::Respond&) {};
  CHECK(world.ask(kGet).status() == 503);
  world.on_request = [](const HttpServer::Respond&) { throw std::runtime_error("broken"); };
  CHECK(world.ask(kGet).status() == 500);
}

TEST_CASE("as many clients of HTTP as the bound are served and one more is turned away") {
  HttpServer::Options options = own();
  options.client_limit = 2;
  HttpWorld world(options);
  HttpClient one(world.path()), two(world.path());
  while (world.server->client_count() < 2) world.io.run_one();
  const HttpClient three = world.ask("");
  CHECK(three.status() == 503);
  one.send(kGet);
  world.run_until_end(one);
  CHECK(one.status() == 200);
  one.leave();
  while (world.server->client_count() > 1) world.io.run_one();
  CHECK(world.ask(kGet).status() == 200);
}

TEST_CASE("as many requests in a second as the bound are answered and one more is not") {
  HttpServer::Options options = own();
  options.requests_per_second = 3;
  HttpWorld world(options);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) CHECK(world.ask(kGet).status() == 200);
  const int fourth = world.ask(kGet).status();
  // Had the machine no time for this, the second is over.
  if (std::chrono::steady_clock::now() - begin < 1s) CHECK(fourth == 429);
}

// The kernel reports the effective uid of a client. Root is allowed, so another user connects.
TEST_CASE("who may not read read.sock may not ask over HTTP on a Unix socket") {
  const bool root = ::geteuid() == 0;
  HttpServer::Options options;
  options.access.own_uid = root ? 0 : ::geteuid() + 1;
  HttpWorld world(options);
  if (root) {
    REQUIRE(::chmod(world.path().c_str(), 0666) == 0);
    REQUIRE(::chmod((world.tmp / "").c_str(), 0755) == 0);
    REQUIRE(::seteuid(65534) == 0);
  }
  HttpClient client(world.path());
  if (root) REQUIRE(::seteuid(0) == 0);
  client.send(kGet);
  world.run_until_end(client);
  CHECK(client.status() == 403);
  CHECK(world.routes.empty());
}

TEST_CASE("the end of the server ends its clients and removes its socket") {
  HttpWorld world;
  HttpClient client(world.path());
  while (world.server->client_count() == 0) world.io.run_one();
  world.server.reset();
  world.io.poll();
  CHECK(client.ended());
  CHECK(::access(world.path().c_str(), F_OK) != 0);
}
