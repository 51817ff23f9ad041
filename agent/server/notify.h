// Messages to the service manager (sd_notify(3)). Without NOTIFY_SOCKET, every call does nothing.
// Any thread. Each call sends one datagram and does not wait for an answer.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace cgphase::notify {

// The daemon is ready. `status` is one line for `systemctl status`; it is escaped here.
void ready(std::string_view status);
void status(std::string_view status);
// Call from the control loop itself, so that a hung loop is detected.
void watchdog();
// A reload begins. Call ready() when it is done.
void reloading();
void stopping();

// The interval for watchdog(): half of the timeout of the service manager. Absent: no timeout.
std::optional<std::chrono::microseconds> watchdog_interval();

}  // namespace cgphase::notify
