#include "cli/commands/interruption.h"

#include <csignal>

namespace cgphase {
namespace {

volatile std::sig_atomic_t interrupted = 0;

}  // namespace

void catch_interruptions() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now{};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_handler == SIG_IGN) continue;
    struct sigaction ending{};
    ending.sa_handler = [](int) { interrupted = 1; };
    ::sigaction(signal, &ending, nullptr);
  }
}

Status not_interrupted() {
  return interrupted != 0 ? failure(ErrorKind::io, "interrupted; nothing was written") : Status{};
}

}  // namespace cgphase
