#include "agent/http/http_sockets.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "tests/agent/temporary_directory.h"

using namespace cgphase;

namespace {

// A listening socket of 127.0.0.1, or of all addresses, at a port of the kernel's choice.
Fd listening_port(in_addr_t address, bool listening = true) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in bound{};
  bound.sin_family = AF_INET;
  bound.sin_addr.s_addr = htonl(address);
  REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&bound), sizeof bound) == 0);
  if (listening) REQUIRE(::listen(fd.get(), 1) == 0);
  return fd;
}

Result<HttpSocket> open_at_path(const std::string& path) {
  return open_http_socket({.path = path}, std::nullopt);
}

}  // namespace

TEST_CASE("a socket of HTTP is there for its owner and group, whatever the umask, and goes") {
  const TemporaryDirectory tmp;
  const std::string path = tmp / "http.sock";
  {
    const mode_t old = ::umask(0077);
    const auto socket = open_at_path(path);
    CHECK(::umask(old) == 0077);
    REQUIRE_MESSAGE(socket, socket.error().text);
    CHECK(socket->is_unix());
    struct stat status {};
    REQUIRE(::lstat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0660);
  }
  CHECK(::access(path.c_str(), F_OK) != 0);
}

TEST_CASE("the socket of a dead daemon is replaced, one that is listened on is not") {
  const TemporaryDirectory tmp;
  const std::string path = tmp / "http.sock", kept = tmp / "kept.sock";
  {
    const auto dead = open_at_path(path);
    REQUIRE(dead);
    REQUIRE(::rename(path.c_str(), kept.c_str()) == 0);
  }
  REQUIRE(::rename(kept.c_str(), path.c_str()) == 0);
  const auto alive = open_at_path(path);
  REQUIRE_MESSAGE(alive, alive.error().text);
  const auto second = open_at_path(path);
  REQUIRE_FALSE(second);
  CHECK(second.error().text == path + " is in the way: somebody listens there");
}

TEST_CASE("what is no socket is left where it is") {
  const TemporaryDirectory tmp;
  std::ofstream(tmp / "file") << "mine";
  const auto refused = open_at_path(tmp / "file");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::invalid);
  CHECK(std::ifstream(tmp / "file").good());
}

TEST_CASE("no socket is put where others may write, nor where there is no directory") {
  const TemporaryDirectory tmp;
  REQUIRE(::mkdir((tmp / "open").c_str(), 0700) == 0);
  REQUIRE(::chmod((tmp / "open").c_str(), 0770) == 0);
  CHECK(open_at_path(tmp / "open/http.sock").error().kind == ErrorKind::denied);
  CHECK(open_at_path(tmp / "none/http.sock").error().kind == ErrorKind::not_found);
}

TEST_CASE("of what systemd passes only listening sockets of this machine are served") {
  auto own = take_passed_socket(listening_port(INADDR_LOOPBACK));
  REQUIRE_MESSAGE(own, own.error().text);
  CHECK_FALSE(own->is_unix());
  CHECK(own->address().port > 0);
  const auto open = take_passed_socket(listening_port(INADDR_ANY));
  REQUIRE_FALSE(open);
  CHECK(open.error().text.find("anybody could ask there") != std::string::npos);
  CHECK_FALSE(take_passed_socket(listening_port(INADDR_LOOPBACK, false)));
  CHECK_FALSE(take_passed_socket(Fd(::socket(AF_INET, SOCK_DGRAM, 0))));
  CHECK_FALSE(take_passed_socket(Fd(::dup(2))));
}

TEST_CASE("what systemd passed to another process is left alone") {
  ::setenv("LISTEN_FDS", "1", 1);
  ::setenv("LISTEN_PID", "1", 1);
  CHECK(take_passed_sockets().empty());
  CHECK(std::getenv("LISTEN_FDS") == nullptr);
}
