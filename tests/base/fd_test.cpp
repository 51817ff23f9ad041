#include "base/fd.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
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

TEST_CASE("a kernel text file is read from its start each time") {
  const Fd fd = temporary_file("max 100000\n");
  std::array<char, 64> buffer{};
  for (int round = 0; round < 2; ++round) {
    CHECK(pread_text(fd.get(), buffer).value() == "max 100000\n");
  }
}

TEST_CASE("a file that fills the buffer is refused, one byte less is read") {
  const Fd fd = temporary_file("12345678");
  std::array<char, 8> small{};
  CHECK(pread_text(fd.get(), small).error().kind == ErrorKind::invalid);
  std::array<char, 9> enough{};
  CHECK(pread_text(fd.get(), enough).value() == "12345678");
}

TEST_CASE("what is opened is closed on exec") {
  const Fd fd = open_path("/dev/null", O_RDONLY).value();
  CHECK((::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
}
