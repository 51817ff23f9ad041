#include "base/fd.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>

using namespace cgphase;

namespace {

Fd temporary_file(std::string_view content) {
  char name[] = "/tmp/cgphase-fd-XXXXXX";
  Fd fd(::mkstemp(name));
  ::unlink(name);
  REQUIRE(write_all(fd.get(), content));
  return fd;
}

}  // namespace

TEST_CASE("a descriptor is closed once, by its last owner") {
  Fd first = temporary_file("x");
  const int number = first.get();
  Fd second = std::move(first);
  CHECK_FALSE(first.valid());
  CHECK(second.get() == number);
  second.reset();
  CHECK(::fcntl(number, F_GETFD) == -1);
}

TEST_CASE("a kernel text file is read from offset 0 each time") {
  const Fd fd = temporary_file("max 100000\n");
  std::array<char, 64> buffer{};
  for (int round = 0; round < 2; ++round) {
    CHECK(pread_text(fd.get(), buffer).value() == "max 100000\n");
  }
}

TEST_CASE("a file that fills the buffer is invalid, one byte less is read") {
  const Fd fd = temporary_file("12345678");
  std::array<char, 8> small{};
  CHECK(pread_text(fd.get(), small).error().kind == ErrorKind::invalid);
  std::array<char, 9> enough{};
  CHECK(pread_text(fd.get(), enough).value() == "12345678");
}

TEST_CASE("open_path and open_at set close-on-exec") {
  const Fd fd = open_path("/dev/null", O_RDONLY).value();
  CHECK((::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("is_among_last recognises the last descriptors below the limit") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit few{200, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  {
    const Fd fd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 195));
    REQUIRE(fd.get() == 195);
    CHECK(is_among_last(fd, 5));
    CHECK_FALSE(is_among_last(fd, 4));
    CHECK_FALSE(is_among_last(Fd(), 200));
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
}
