#include "base/temporary_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <array>

using namespace cgphase;

TEST_CASE("an unlinked file has no name, and gives back what was written") {
  const Result<Fd> file = unlinked_file();
  REQUIRE(file);
  struct stat status {};
  REQUIRE(::fstat(file->get(), &status) == 0);
  CHECK(status.st_nlink == 0);
  CHECK(S_ISREG(status.st_mode));
  REQUIRE(write_all(file->get(), "phases"));
  std::array<char, 16> buffer;
  CHECK(pread_text(file->get(), buffer).value() == "phases");
}
