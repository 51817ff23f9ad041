// What the service manager is told (sd_notify(3)). Every call does nothing where there is none:
// NOTIFY_SOCKET is not set. Any thread; sends one datagram and does not block for an answer.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace cgphase::notify {

// The daemon serves; `status` is one line for `systemctl status`, escaped here.
void ready(std::string_view status);
void status(std::string_view status);
// Sent by the control loop itself, so that a hung loop is seen.
void watchdog();
// A reload begins; call ready() when it is done.
void reloading();
void stopping();

// How often to call watchdog(): half of what the service manager waits for. Absent: it does not.
std::optional<std::chrono::microseconds> watchdog_interval();

}  // namespace cgphase::notify
