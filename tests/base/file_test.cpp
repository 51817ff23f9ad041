#include "base/file.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <iterator>

using namespace cgphase;

namespace {

struct Directory {
  std::string path;
  Directory() {
    char name[] = "/tmp/cgphase-file-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = name;
  }
  ~Directory() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("a file is read up to its bound and refused beyond") {
  Directory directory;
  const std::string path = directory.path + "/f";
  REQUIRE(replace_file(path, "12345"));
  CHECK(read_file(path, 5).value() == "12345");
  CHECK(read_file(path, 4).error().kind == ErrorKind::invalid);
}

TEST_CASE("a missing file is not found, and the error names it") {
  const auto result = read_file("/nonexistent/x", 10);
  CHECK(result.error().kind == ErrorKind::not_found);
  CHECK(result.error().text.starts_with("/nonexistent/x: "));
}

TEST_CASE("replacing a file leaves no temporary behind and keeps the mode asked for") {
  Directory directory;
  const std::string path = directory.path + "/f";
  REQUIRE(replace_file(path, "old", 0600));
  REQUIRE(replace_file(path, "new", 0600));
  CHECK(read_file(path, 100).value() == "new");
  struct stat status{};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  int entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory.path))
    ++entries;
  CHECK(entries == 1);
}

TEST_CASE("a file that is replaced in pieces is the old one until it is committed") {
  Directory directory;
  const std::string path = directory.path + "/f";
  REQUIRE(replace_file(path, "old"));
  {
    Result<FileReplacement> file = FileReplacement::create(path);
    REQUIRE(file);
    REQUIRE(file->write("one, "));
    CHECK(read_file(path, 100).value() == "old");
    REQUIRE(file->write("two"));
    REQUIRE(file->commit());
  }
  CHECK(read_file(path, 100).value() == "one, two");
}

TEST_CASE("a file that is never committed stays as it was, and nothing lies beside it") {
  Directory directory;
  const std::string path = directory.path + "/f";
  REQUIRE(replace_file(path, "old"));
  {
    Result<FileReplacement> file = FileReplacement::create(path);
    REQUIRE(file);
    const FileReplacement moved = *std::move(file);
  }
  CHECK(read_file(path, 100).value() == "old");
  const std::filesystem::directory_iterator entries(directory.path);
  CHECK(std::distance(begin(entries), end(entries)) == 1);
}
