#include "agent/notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>

#include "base/fd.h"
#include "base/parse.h"
#include "base/text.h"

namespace cgphase::notify {
namespace {

constexpr std::size_t kStatusLimitBytes = 512;

// A newline would begin another assignment of the notify protocol; printable() leaves none.
std::string status_line(std::string_view status) {
  return "STATUS=" + printable(status.substr(0, kStatusLimitBytes));
}

std::string_view environment(const char* name) {
  const char* value = ::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

// The protocol is the datagram, and stays as it is (sd_notify(3), notes). libsystemd, which would
// send it as well, brings five libraries along, 1 MB of each process. A failure to tell is nothing
// to act on: the service manager draws its own conclusion.
void send(const std::string& text) {
  const std::string_view path = environment("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // A leading @ stands for the zero byte of an abstract name.
  if (path.size() < 2 || path.size() >= sizeof address.sun_path) return;
  if (path[0] != '/' && path[0] != '@') return;
  path.copy(address.sun_path, path.size());
  if (path[0] == '@') address.sun_path[0] = 0;
  const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  (void)::sendto(socket.get(), text.data(), text.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address), length);
}

}  // namespace

void ready(std::string_view status) { send("READY=1\n" + status_line(status)); }

void status(std::string_view status) { send(status_line(status)); }

void watchdog() { send("WATCHDOG=1"); }

void reloading() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t usec = std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
  send("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(usec));
}

void stopping() { send("STOPPING=1"); }

std::optional<std::chrono::microseconds> watchdog_interval() {
  const auto usec = parse_u64(environment("WATCHDOG_USEC"));
  if (!usec || *usec == 0 || *usec == UINT64_MAX) return std::nullopt;
  // That of a parent, which forgot to take it out of the environment.
  const std::string_view pid = environment("WATCHDOG_PID");
  if (!pid.empty() && parse_u64(pid) != static_cast<std::uint64_t>(::getpid())) return std::nullopt;
  return std::chrono::microseconds(*usec / 2);
}

}  // namespace cgphase::notify
