#include "base/thread.h"

#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <future>
#include <string>

#include "tests/in_child.h"

using namespace cgphase;

namespace {

constexpr uid_t kSomebody = 60'001;  // no other process here has it

// Runs in a child that may have no other process or thread.
int start_without_room() {
  const rlimit none{1, 1};
  if (::getuid() == 0 && ::setuid(kSomebody) != 0) return 1;
  if (::setrlimit(RLIMIT_NPROC, &none) != 0) return 2;
  const auto thread = start_thread("no-room", [] {});
  if (thread.has_value()) return 3;
  if (thread.error().kind != ErrorKind::io) return 4;
  return thread.error().text.find("no-room") == std::string::npos ? 5 : 0;
}

}  // namespace

TEST_CASE("a thread has its name and blocks all signals, its creator does not") {
  std::promise<void> may_end;
  bool blocked = false;
  auto thread = start_thread("named", [&] {
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked = ::sigismember(&mask, SIGTERM) == 1;
    may_end.get_future().wait();
  });
  REQUIRE(thread.has_value());
  std::array<char, 16> name{};
  ::pthread_getname_np(thread->native_handle(), name.data(), name.size());
  CHECK(std::string(name.data()) == "named");
  may_end.set_value();
  thread->join();
  CHECK(blocked);
  sigset_t mine;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mine);
  CHECK(::sigismember(&mine, SIGTERM) == 0);
}

TEST_CASE("if no thread can be started, the error names it and the process continues") {
  CHECK(in_child(start_without_room) == 0);
}
