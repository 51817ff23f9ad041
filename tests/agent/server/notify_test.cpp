#include "agent/server/notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/fd.h"
#include "tests/agent/temporary_directory.h"

using namespace cgphase;

namespace {

// Stands where the service manager would: a datagram socket named by NOTIFY_SOCKET.
class ServiceManager {
 public:
  ServiceManager() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = tmp_ / "notify";
    std::memcpy(address.sun_path, path.data(), path.size());
    REQUIRE(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  ~ServiceManager() {
    ::unsetenv("NOTIFY_SOCKET");
    ::unsetenv("WATCHDOG_USEC");
    ::unsetenv("WATCHDOG_PID");
  }
  std::string received() const {
    char buffer[2048];
    const ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    return got < 0 ? "(nothing)" : std::string(buffer, static_cast<std::size_t>(got));
  }

 private:
  TemporaryDirectory tmp_;
  Fd socket_;
};

}  // namespace

TEST_CASE("ready is said with a status line") {
  const ServiceManager manager;
  notify::ready("observing 3 containers");
  CHECK(manager.received() == "READY=1\nSTATUS=observing 3 containers");
}

// rule: SEC-03
TEST_CASE("a status cannot smuggle another assignment") {
  const ServiceManager manager;
  notify::status("web\nMAINPID=1");
  CHECK(manager.received() == "STATUS=web\\x0aMAINPID=1");
}

TEST_CASE("a status is cut at its limit") {
  const ServiceManager manager;
  notify::status(std::string(5000, 'x'));
  CHECK(manager.received() == "STATUS=" + std::string(512, 'x'));
}

TEST_CASE("watchdog, reloading and stopping are said") {
  const ServiceManager manager;
  notify::watchdog();
  CHECK(manager.received() == "WATCHDOG=1");
  notify::stopping();
  CHECK(manager.received() == "STOPPING=1");
  notify::reloading();
  CHECK(manager.received().starts_with("RELOADING=1\nMONOTONIC_USEC="));
}

TEST_CASE("without a service manager nothing is said and nothing fails") {
  ::unsetenv("NOTIFY_SOCKET");
  notify::ready("alone");
  notify::watchdog();
  CHECK_FALSE(notify::watchdog_interval());
}

TEST_CASE("the watchdog is fed twice in its time") {
  const ServiceManager manager;
  ::setenv("WATCHDOG_USEC", "15000000", 1);
  CHECK(notify::watchdog_interval() == std::chrono::microseconds(7'500'000));
}

TEST_CASE("a watchdog of another process is not ours") {
  const ServiceManager manager;
  ::setenv("WATCHDOG_USEC", "15000000", 1);
  ::setenv("WATCHDOG_PID", "1", 1);
  CHECK_FALSE(notify::watchdog_interval());
}
