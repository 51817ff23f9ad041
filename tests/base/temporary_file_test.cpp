#include "base/temporary_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>

#include "base/file.h"

using namespace cgphase;

TEST_CASE("an unlinked file has no name and returns what was written") {
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

TEST_CASE("a private folder has mode 0700 and is removed with its content") {
  std::string path;
  {
    const Result<PrivateFolder> folder = PrivateFolder::make();
    REQUIRE(folder);
    path = folder->path();
    struct stat status {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0700);
    REQUIRE(replace_file(path + "/f", "text"));
  }
  CHECK_FALSE(std::filesystem::exists(path));
}
