// Threads whose start may fail, as memory and process limits have it.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "base/result.h"

namespace cgphase {

// A thread that runs `body` with every signal blocked: signals to the process are for the thread
// that waits for them. `name` is what the kernel shows, at most 15 bytes. The error (io) says that
// no thread could be started (pthread_create(3): EAGAIN).
Result<std::thread> start_thread(const std::string& name, std::function<void()> body);

// Gives the calling thread a table of descriptors of its own with nothing in it but the standard
// ones. A thread that hangs in the kernel outlives its process: so it keeps neither lock nor socket
// from the program that is started next. (Linux 5.9; before, nothing.)
void leave_descriptors();

}  // namespace cgphase
