// Sends datagrams through a veth pair between two network namespaces, or through loopback. Each is
// answered before the next is sent, so that their number and size are exact. For tests and
// benchmarks.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/fd.h"

namespace cgphase {

inline constexpr std::size_t kAskedBytes = 1200, kAnsweredBytes = 100;
inline constexpr std::uint64_t kDatagramHeaderBytes = 20 + 8;  // IP, UDP
inline constexpr const char* kHostEnd = "198.18.77.1";
inline constexpr const char* kInnerEnd = "198.18.77.2";

inline sockaddr_in address_of(const char* text) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(7007);
  ::inet_pton(AF_INET, text, &address.sin_addr);
  return address;
}

inline const sockaddr* plain(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// Writes to `ready` when it can answer, and answers until it is killed.
inline int answer(const char* at, int ready) {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM, 0));
  const sockaddr_in own = address_of(at);
  if (::bind(socket.get(), plain(own), sizeof(own)) != 0) return 1;
  if (::write(ready, "r", 1) != 1) return 2;
  std::array<char, 2048> bytes;
  for (;;) {
    sockaddr_in peer{};
    socklen_t size = sizeof(peer);
    if (::recvfrom(socket.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&peer),
                   &size) < 0)
      return 3;
    if (::sendto(socket.get(), bytes.data(), kAnsweredBytes, 0, plain(peer), size) < 0) return 4;
  }
}

// 0: all datagrams were answered.
inline int ask(const char* whom, std::uint64_t times) {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM, 0));
  const sockaddr_in peer = address_of(whom);
  if (::connect(socket.get(), plain(peer), sizeof(peer)) != 0) return 1;
  std::array<char, 2048> bytes{};
  for (std::uint64_t i = 0; i < times; ++i) {
    if (::send(socket.get(), bytes.data(), kAskedBytes, 0) != kAskedBytes) return 2;
    if (::recv(socket.get(), bytes.data(), bytes.size(), 0) != kAnsweredBytes) return 3;
  }
  return 0;
}

// A network namespace with the lifetime of this object, joined to the one outside by a veth pair.
// Needs root, ip and nsenter.
class InnerNetwork {
 public:
  InnerNetwork() {
    int ready[2];
    if (::pipe2(ready, O_CLOEXEC) != 0) return;
    const Fd reported(ready[0]);
    Fd tell(ready[1]);
    keeper_ = ::fork();
    if (keeper_ == 0) {
      if (::unshare(CLONE_NEWNET) != 0 || ::write(tell.get(), "r", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    tell.reset();
    char byte;
    if (keeper_ < 0 || ::read(reported.get(), &byte, 1) != 1) return;
    const std::string pid = std::to_string(keeper_);
    auto inner = open_path("/proc/" + pid + "/ns/net", O_RDONLY);
    if (!inner) return;
    inner_ = std::move(*inner);
    const std::string name = "cgp" + pid, inside = "nsenter --net -t " + pid + " ip ";
    ready_ = run("ip link add " + name + " type veth peer name inner netns " + pid) &&
             run("ip addr add " + std::string(kHostEnd) + "/30 dev " + name) &&
             run("ip link set " + name + " up") &&
             run(inside + "addr add " + kInnerEnd + "/30 dev inner") &&
             run(inside + "link set inner up") && run(inside + "link set lo up");
  }
  ~InnerNetwork() {
    if (keeper_ <= 0) return;
    if (inner_.valid()) run("ip link del cgp" + std::to_string(keeper_));
    ::kill(keeper_, SIGKILL);
    ::waitpid(keeper_, nullptr, 0);
  }
  InnerNetwork(const InnerNetwork&) = delete;
  InnerNetwork& operator=(const InnerNetwork&) = delete;

  bool ready() const { return ready_; }
  // From now on, datagrams to the inner end go to an unused link-layer address.
  bool mislead() const {
    return run("ip neigh replace " + std::string(kInnerEnd) + " lladdr 02:00:00:00:00:01 dev cgp" +
               std::to_string(keeper_) + " nud permanent");
  }
  // Moves the calling thread into the namespace.
  bool enter() const { return ::setns(inner_.get(), CLONE_NEWNET) == 0; }

 private:
  static bool run(const std::string& command) {
    return std::system((command + " 2>&1").c_str()) == 0;
  }

  pid_t keeper_ = -1;
  Fd inner_;
  bool ready_ = false;
};

}  // namespace cgphase
