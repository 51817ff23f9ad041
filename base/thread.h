// Starts threads. A start may fail because of memory and process limits.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "base/result.h"

namespace cgphase {

// Starts a thread that runs `body` with every signal blocked: another thread waits for the signals
// of the process. `name` is the name in the kernel, at most 15 bytes. The error has the kind of the
// errno, usually io (pthread_create(3): EAGAIN).
Result<std::thread> start_thread(const std::string& name, std::function<void()> body);

// Gives the calling thread its own table of descriptors with only the standard ones. A thread that
// hangs in the kernel outlives its process. With its own table it keeps no lock and no socket from
// the next instance. (Since Linux 5.9; before, it does nothing.)
void leave_descriptors();

}  // namespace cgphase
