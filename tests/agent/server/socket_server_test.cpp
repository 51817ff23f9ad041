#include "agent/server/socket_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <utility>  // before Asio 1.74, which uses std::exchange without it

#include <boost/asio/io_context.hpp>
#include <cstring>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <vector>

#include "base/fd.h"
#include "tests/agent/temporary_directory.h"
#include "tests/protocol/wire.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

Fd connect_to(const std::string& path) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    socket.reset();
  return socket;
}

// A client in the test's own thread: never blocks; the test turns the server's loop between calls.
class Client {
 public:
  explicit Client(const std::string& path) : socket_(connect_to(path)) { REQUIRE(socket_.valid()); }

  void send(const std::string& bytes) const {
    CHECK(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(bytes.size()));
  }
  void send(const Request& request) const { send(encode_frame(encode_request(request))); }

  // Takes what is there. True when the server has ended the connection.
  bool ended() {
    char buffer[65536];
    for (;;) {
      const ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, 0);
      if (got == 0 || (got < 0 && errno != EAGAIN)) return true;
      if (got < 0) return false;
      received_.append(buffer, static_cast<std::size_t>(got));
    }
  }
  Reply reply() const {
    REQUIRE(received_.size() > kFrameHeaderBytes);
    const auto reply = parse_reply(std::string_view(received_).substr(kFrameHeaderBytes));
    REQUIRE(reply);
    return *reply;
  }
  bool received_anything() const { return !received_.empty(); }

 private:
  Fd socket_;
  std::string received_;
};

// A server in a directory of its own whose answers the test gives.
struct Fixture {
  explicit Fixture(SocketServer::Options options = {}) : options_(std::move(options)) {
    auto acquired = InstanceLock::acquire(tmp / "run");
    REQUIRE(acquired);
    lock.emplace(*std::move(acquired));
    auto listening = SocketServer::listen(
        io, *lock, options_,
        [this](const Request& request, const Peer& peer, SocketServer::Respond respond) {
          requests.push_back(request);
          peers.push_back(peer);
          if (on_request) on_request(respond);
          else respond({{"verb", to_string(verb_of(request))}});
        });
    REQUIRE_MESSAGE(listening, listening.error().text);
    server.emplace(*std::move(listening));
  }

  std::string read_path() const { return tmp / "run/read.sock"; }
  std::string admin_path() const { return tmp / "run/admin.sock"; }

  void run_until_end(Client& client) {
    while (!client.ended()) io.run_one();
  }

  TemporaryDirectory tmp;
  boost::asio::io_context io;
  SocketServer::Options options_;
  std::optional<InstanceLock> lock;
  std::function<void(SocketServer::Respond)> on_request;
  std::vector<Request> requests;
  std::vector<Peer> peers;
  std::optional<SocketServer> server;
};

mode_t mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

SocketServer::Options impatient() {
  SocketServer::Options options;
  options.request_limit = 5ms;
  options.answer_limit = 5ms;
  return options;
}

}  // namespace

TEST_CASE("a reading request is answered and the connection ends") {
  Fixture f;
  Client client(f.read_path());
  client.send(request_of(Verb::list));
  f.run_until_end(client);
  CHECK(client.reply().body == json{{"schema", 2}, {"verb", "list"}});
  REQUIRE(f.peers.size() == 1);
  CHECK(f.peers[0].uid == ::geteuid());
  CHECK_FALSE(f.peers[0].admin);
}

// rule: SEC-04
TEST_CASE("the sockets have the modes of the contract whatever the umask") {
  const mode_t old = ::umask(0077);
  const Fixture f;
  ::umask(old);
  CHECK(mode_of(f.read_path()) == 0660);
  CHECK(mode_of(f.admin_path()) == 0600);
}

TEST_CASE("binding leaves the umask as it was") {
  const mode_t old = ::umask(0027);
  const Fixture f;
  CHECK(::umask(old) == 0027);
}

TEST_CASE("an acting verb is taken on the admin socket") {
  Fixture f;
  Client client(f.admin_path());
  client.send(request_of(Verb::restore, {{"all", true}}));
  f.run_until_end(client);
  CHECK(client.reply().exit == Exit::ok);
  CHECK(f.peers.at(0).admin);
}

// rule: SEC-01
TEST_CASE("an acting verb on the read socket is refused and does not reach the agent") {
  Fixture f;
  Client client(f.read_path());
  client.send(request_of(Verb::restore, {{"all", true}}));
  f.run_until_end(client);
  CHECK(client.reply().exit == Exit::denied);
  CHECK(f.requests.empty());
}

TEST_CASE("an answer may come later") {
  Fixture f;
  SocketServer::Respond later;
  f.on_request = [&](SocketServer::Respond respond) { later = std::move(respond); };
  Client client(f.read_path());
  client.send(request_of(Verb::status));
  while (f.requests.empty()) f.io.run_one();
  CHECK_FALSE(client.ended());
  later({{"n", 1}});
  later({{"n", 2}});
  f.run_until_end(client);
  CHECK(client.reply().body["n"] == 1);
}

TEST_CASE("an answer that never comes ends in an error") {
  Fixture f(impatient());
  f.on_request = [](const SocketServer::Respond&) {};
  Client client(f.read_path());
  client.send(request_of(Verb::status));
  f.run_until_end(client);
  CHECK(client.reply().exit == Exit::failure);
}

TEST_CASE("an answer after its client has left is dropped") {
  Fixture f;
  SocketServer::Respond later;
  f.on_request = [&](SocketServer::Respond respond) { later = std::move(respond); };
  {
    Client client(f.read_path());
    client.send(request_of(Verb::status));
    while (f.requests.empty()) f.io.run_one();
  }
  later({{"n", 1}});
  while (f.server->client_count() > 0) f.io.run_one();
  CHECK(f.server->client_count() == 0);
}

TEST_CASE("an agent that throws costs its client only") {
  Fixture f;
  f.on_request = [](const SocketServer::Respond&) { throw std::runtime_error("broken"); };
  Client client(f.read_path());
  client.send(request_of(Verb::status));
  f.run_until_end(client);
  CHECK(client.reply().error == "the daemon failed to answer: broken");
}

TEST_CASE("a reply of 16 MiB arrives whole") {
  Fixture f;
  f.on_request = [](const SocketServer::Respond& respond) {
    respond({{"t", std::string(kReplyLimitBytes - 100, 'x')}});
  };
  Client client(f.read_path());
  client.send(request_of(Verb::list));
  f.run_until_end(client);
  CHECK(client.reply().body["t"].get<std::string>().size() == kReplyLimitBytes - 100);
}

TEST_CASE("a client that never takes its reply is dropped") {
  Fixture f(impatient());
  f.on_request = [](const SocketServer::Respond& respond) {
    respond({{"t", std::string(kReplyLimitBytes - 100, 'x')}});
  };
  Client client(f.read_path());
  client.send(request_of(Verb::list));
  while (f.requests.empty()) f.io.run_one();
  while (f.server->client_count() > 0) f.io.run_one();
  CHECK(f.server->client_count() == 0);
}

TEST_CASE("replies that nobody takes have a bound, and what goes makes room") {
  const json large = {{"t", std::string(1024 * 1024, 'x')}};
  const std::size_t size = encode_reply_frame(ok_reply(large)).size();
  const Request list = request_of(Verb::list);
  for (const std::size_t missing : {std::size_t{0}, std::size_t{1}}) {
    CAPTURE(missing);
    SocketServer::Options options;
    options.request_limit = 1min;  // nobody is dropped meanwhile
    options.unsent_limit_bytes = 2 * size - missing;
    Fixture f(options);
    json body = large;
    f.on_request = [&](const SocketServer::Respond& respond) { respond(body); };
    const auto ask = [&] {
      auto client = std::make_unique<Client>(f.read_path());
      client->send(list);
      for (const std::size_t before = f.requests.size(); f.requests.size() == before;)
        f.io.run_one();
      return client;
    };
    auto silent = ask();
    auto second = ask();
    auto third = ask();
    f.run_until_end(*third);
    CHECK(third->reply().exit == Exit::failure);
    CHECK(third->reply().error ==
          "the daemon is busy: too many replies are unsent; try again");
    body = {{"t", "small"}};
    const auto small = ask();
    f.run_until_end(*small);
    CHECK(small->reply().exit == Exit::ok);
    Client root(f.admin_path());  // has room of its own
    body = large;
    root.send(list);
    f.run_until_end(root);
    CHECK(root.reply().exit == Exit::ok);
    f.run_until_end(*second);
    CHECK(second->reply().exit == (missing == 0 ? Exit::ok : Exit::failure));
    silent.reset();
    while (f.server->client_count() > 0) f.io.run_one();
    const auto next = ask();
    f.run_until_end(*next);
    CHECK(next->reply().exit == Exit::ok);
  }
}

TEST_CASE("a frame announced one byte past 64 KiB is refused before it is read") {
  Fixture f;
  Client client(f.read_path());
  client.send(std::string("\x00\x01\x00\x01", 4));
  f.run_until_end(client);
  CHECK(client.reply().exit == Exit::invalid);
  CHECK(client.reply().error == "request refused: longer than 64 KiB");
}

TEST_CASE("a frame of 64 KiB is read") {
  Fixture f;
  Client client(f.read_path());
  std::string payload = encode_request(request_of(Verb::list));
  payload.resize(kRequestLimitBytes, ' ');
  client.send(encode_frame(payload));
  f.run_until_end(client);
  CHECK(client.reply().exit == Exit::ok);
}

TEST_CASE("a frame announced as 4 GiB is refused") {
  Fixture f;
  Client client(f.read_path());
  client.send("\xff\xff\xff\xff");
  f.run_until_end(client);
  CHECK(client.reply().exit == Exit::invalid);
}

TEST_CASE("a frame that is no JSON, or empty, is refused") {
  for (const std::string payload : {"GET / HTTP/1.1", "", "{\"verb\":\"rm\"}"}) {
    Fixture f;
    Client client(f.read_path());
    client.send(encode_frame(payload));
    f.run_until_end(client);
    CHECK(client.reply().exit == Exit::invalid);
    CHECK(f.requests.empty());
  }
}

TEST_CASE("a client that sends byte by byte and stops is dropped with a reason") {
  Fixture f(impatient());
  Client client(f.read_path());
  const std::string frame = encode_frame(encode_request(request_of(Verb::list)));
  for (std::size_t i = 0; i < 10; ++i) {
    client.send(frame.substr(i, 1));
    f.io.poll();
  }
  f.run_until_end(client);
  CHECK(client.reply().error == "the request did not arrive in time");
}

TEST_CASE("a request that comes byte by byte in time is answered") {
  Fixture f;
  Client client(f.read_path());
  const Request list = request_of(Verb::list);
  for (const char byte : encode_frame(encode_request(list))) {
    client.send(std::string(1, byte));
    f.io.poll();
  }
  f.run_until_end(client);
  CHECK(client.reply().exit == Exit::ok);
}

TEST_CASE("32 silent clients are kept, the 33rd gets an error, and one that leaves makes room") {
  Fixture f;
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 32; ++i) silent.push_back(std::make_unique<Client>(f.read_path()));
  while (f.server->client_count() < 32) f.io.run_one();
  Client late(f.read_path());
  f.run_until_end(late);
  CHECK(late.reply().exit == Exit::unreachable);
  silent.pop_back();
  while (f.server->client_count() >= 32) f.io.run_one();
  Client next(f.read_path());
  next.send(request_of(Verb::list));
  f.run_until_end(next);
  CHECK(next.reply().exit == Exit::ok);
}

TEST_CASE("a full read socket does not lock out the admin socket") {
  Fixture f;
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 32; ++i) silent.push_back(std::make_unique<Client>(f.read_path()));
  while (f.server->client_count() < 32) f.io.run_one();
  Client root(f.admin_path());
  root.send(request_of(Verb::restore, {{"all", true}}));
  f.run_until_end(root);
  CHECK(root.reply().exit == Exit::ok);
}

TEST_CASE("the socket of a dead daemon is replaced") {
  const TemporaryDirectory tmp;
  REQUIRE(::mkdir((tmp / "run").c_str(), 0750) == 0);
  {
    const Fd dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = tmp / "run/read.sock";
    std::memcpy(address.sun_path, path.data(), path.size());
    REQUIRE(::bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  const auto lock = InstanceLock::acquire(tmp / "run");
  boost::asio::io_context io;
  CHECK(SocketServer::listen(io, *lock, {}, nullptr));
}

TEST_CASE("a file that is no socket is not removed for one") {
  const TemporaryDirectory tmp;
  const auto lock = InstanceLock::acquire(tmp / "run");
  std::ofstream(tmp / "run/read.sock") << "precious";
  boost::asio::io_context io;
  const auto server = SocketServer::listen(io, *lock, {}, nullptr);
  REQUIRE_FALSE(server);
  CHECK(server.error().kind == ErrorKind::invalid);
  CHECK(::access((tmp / "run/read.sock").c_str(), F_OK) == 0);
}

TEST_CASE("a socket path is refused one byte past what the kernel takes") {
  const TemporaryDirectory tmp;
  boost::asio::io_context io;
  const std::size_t fixed = tmp.path().size() + 1 + std::strlen("/admin.sock");
  const auto listen_below = [&](std::size_t path_bytes) {
    const auto lock = InstanceLock::acquire(tmp / std::string(path_bytes - fixed, 'd'));
    REQUIRE(lock);
    return SocketServer::listen(io, *lock, {}, nullptr).has_value();
  };
  CHECK(listen_below(107));
  CHECK_FALSE(listen_below(108));
}

TEST_CASE("a server that ends takes its sockets and its clients along") {
  Fixture f;
  Client client(f.read_path());
  while (f.server->client_count() < 1) f.io.run_one();
  f.server.reset();
  f.io.poll();
  CHECK(client.ended());
  CHECK_FALSE(client.received_anything());
  CHECK(::access(f.read_path().c_str(), F_OK) != 0);
  CHECK(::access(f.admin_path().c_str(), F_OK) != 0);
}
