#include "cli/daemon_client.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/fd.h"
#include "tests/agent/temporary_directory.h"

using namespace cgphase;
using namespace std::chrono_literals;

namespace {

// A listening socket that sends `bytes` to its one client and closes, or sends nothing.
class ListeningPeer {
 public:
  explicit ListeningPeer(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    REQUIRE(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(socket_.get(), 1) == 0);
  }
  void say(std::string bytes) {
    thread_ = std::jthread([this, bytes = std::move(bytes)] {
      const Fd client(::accept(socket_.get(), nullptr, nullptr));
      static_cast<void>(write_all(client.get(), bytes));
    });
  }

 private:
  Fd socket_;
  std::jthread thread_;
};

const Request kStatus = StatusRequest{};

// Result of a request that is answered with these bytes.
std::expected<nlohmann::json, Complaint> answer_to(const std::string& bytes) {
  const TemporaryDirectory tmp;
  ListeningPeer peer(tmp / "s");
  peer.say(bytes);
  return ask_daemon(tmp / "s", kStatus);
}

}  // namespace

TEST_CASE("a reply is accepted whichever way the connection closes") {
  CHECK(answer_to(encode_reply_frame(ok_reply({{"n", 1}}))).value()["n"] == 1);
}

TEST_CASE("a missing socket and a socket without a listener are unreachable") {
  const TemporaryDirectory tmp;
  CHECK(ask_daemon(tmp / "none", kStatus).error().exit == Exit::unreachable);
  std::ofstream(tmp / "file") << "x";
  CHECK(ask_daemon(tmp / "file", kStatus).error().exit == Exit::unreachable);
}

TEST_CASE("a daemon that closes early or sends half a reply is unreachable") {
  CHECK(answer_to("").error().exit == Exit::unreachable);
  CHECK(answer_to("\x00\x00").error().exit == Exit::unreachable);
  CHECK(answer_to(encode_reply_frame(ok_reply({})).substr(0, 9)).error().exit == Exit::unreachable);
}

TEST_CASE("a silent daemon is unreachable after the deadline") {
  const TemporaryDirectory tmp;
  const ListeningPeer peer(tmp / "s");
  CHECK(ask_daemon(tmp / "s", kStatus, 5ms).error().exit == Exit::unreachable);
}

TEST_CASE("a reply announced above the bound is refused") {
  CHECK(answer_to("\xff\xff\xff\xff").error().exit == Exit::unreachable);
}

TEST_CASE("a reply of an unknown form is a failure") {
  const auto body = answer_to(encode_frame("HTTP/1.1 400"));
  CHECK(body.error().exit == Exit::failure);
  CHECK(body.error().text.find("are command and daemon of the same version?") != std::string::npos);
}

TEST_CASE("a socket path is refused one byte past the kernel's limit") {
  CHECK(ask_daemon("/" + std::string(106, 'x'), kStatus).error().exit == Exit::unreachable);
  CHECK(ask_daemon("/" + std::string(107, 'x'), kStatus).error().exit == Exit::usage);
}
