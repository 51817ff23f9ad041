#include "control/write_deadline.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

#include "base/fd.h"

using namespace cgphase;

namespace {

// Blocks until a byte arrives or a signal interrupts it. Returns the errno, 0 after a byte.
int blocking_read(const Fd& fd) {
  char byte;
  return ::read(fd.get(), &byte, 1) < 0 ? errno : 0;
}

struct Pipe {
  Pipe() {
    std::array<int, 2> ends;
    REQUIRE(::pipe(ends.data()) == 0);
    reading = Fd(ends[0]);
    writing = Fd(ends[1]);
  }
  Fd reading, writing;
};

}  // namespace

// rule: S-11
TEST_CASE("a blocking system call ends at the deadline") {
  const Pipe pipe;
  WriteDeadline deadline;
  for (const int ms : {0, 1, 20}) {
    deadline.arm(std::chrono::milliseconds(ms));
    CHECK(blocking_read(pipe.reading) == EINTR);
    deadline.disarm();
  }
}

TEST_CASE("another thread can end a system call before the deadline") {
  const Pipe pipe;
  WriteDeadline deadline;
  deadline.arm(std::chrono::hours(1));
  std::thread other([&] { deadline.expire_now(); });
  CHECK(blocking_read(pipe.reading) == EINTR);
  other.join();
  deadline.disarm();
}

TEST_CASE("the owner is interrupted repeatedly, so that no single signal is lost") {
  const Pipe pipe;
  WriteDeadline deadline;
  deadline.arm(std::chrono::milliseconds(0));
  for (int round = 0; round < 3; ++round) CHECK(blocking_read(pipe.reading) == EINTR);
  deadline.disarm();
}

TEST_CASE("after disarming nothing is interrupted, not even by expire_now") {
  const Pipe pipe;
  WriteDeadline deadline;
  deadline.arm(std::chrono::milliseconds(10));
  deadline.disarm();
  deadline.expire_now();
  pollfd nothing{pipe.reading.get(), POLLIN, 0};
  CHECK(::poll(&nothing, 1, 30) == 0);  // -1 when interrupted
}
