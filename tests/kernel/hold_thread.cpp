// hold_thread ID: stops one thread of a process while the others go on, until this program ends. It
// says "held" when the thread stands still. SIGSTOP would stop them all.
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
  for (;;) ::pause();  // the kernel lets go of it when this program ends
}
