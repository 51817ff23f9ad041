// hold_thread ID: stops one thread of a process until this program ends; the other threads
// continue. It prints "held" when the thread is stopped. SIGSTOP would stop all threads.
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "base/parse.h"

int main(int count, char** arguments) {
  const auto id = count == 2 ? cgphase::parse_u64(arguments[1]) : std::nullopt;
  if (!id) {
    std::fputs("usage: hold_thread ID\n", stderr);
    return 2;
  }
  const auto thread = static_cast<pid_t>(*id);
  int status = 0;
  if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0 ||
      ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0 ||
      ::waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status)) {
    std::perror("hold_thread");
    return 1;
  }
  std::puts("held");
  std::fflush(stdout);
  for (;;) ::pause();  // when this program ends, the kernel detaches and the thread continues
}
