#include "agent/server/notify.h"

#include <systemd/sd-daemon.h>

#include <cstdint>
#include <ctime>
#include <string>

#include "base/text.h"

namespace cgphase::notify {
namespace {

constexpr std::size_t kStatusLimitBytes = 512;

// A newline would begin another assignment of the protocol. printable() leaves no newline.
std::string status_line(std::string_view status) {
  return "STATUS=" + printable(status.substr(0, kStatusLimitBytes));
}

// A failed message needs no action here: the service manager has a timeout.
void send(const std::string& text) { static_cast<void>(::sd_notify(0, text.c_str())); }

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
  std::uint64_t usec = 0;
  if (::sd_watchdog_enabled(0, &usec) <= 0) return std::nullopt;
  return std::chrono::microseconds(usec / 2);
}

}  // namespace cgphase::notify
