#include "base/thread.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <climits>
#include <system_error>
#include <utility>

namespace cgphase {

Result<std::thread> start_thread(const std::string& name, std::function<void()> body) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  int error = 0;
  try {
    thread = std::thread(std::move(body));
  } catch (const std::system_error& failed) {
    error = failed.code().value();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0)
    return errno_failure("starting the thread " + name + " (ulimit -u, pids.max, memory)", error);
  ::pthread_setname_np(thread.native_handle(), name.c_str());
  return thread;
}

void leave_descriptors() {
  (void)::close_range(STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_UNSHARE);
}

}  // namespace cgphase
