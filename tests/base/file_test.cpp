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

TEST_CASE("what is no regular file is not replaced, and stays what it is") {
  Directory directory;
  const std::string pipe = directory.path + "/pipe", folder = directory.path + "/folder";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  REQUIRE(std::filesystem::create_directory(folder));
  for (const std::string& path : {pipe, folder}) {
    const Status replaced = replace_file(path, "new");
    REQUIRE_FALSE(replaced);
    CHECK(replaced.error().kind == ErrorKind::invalid);
    CHECK(replaced.error().text.starts_with(path + ": is no regular file"));
  }
  CHECK(std::filesystem::is_fifo(pipe));
  const std::filesystem::directory_iterator entries(directory.path);
  CHECK(std::distance(begin(entries), end(entries)) == 2);
}

TEST_CASE("behind a link what it leads to is replaced, and the link stays") {
  Directory directory;
  const std::string link = directory.path + "/link", target = directory.path + "/folder/f";
  REQUIRE(std::filesystem::create_directory(directory.path + "/folder"));
  REQUIRE(replace_file(target, "old"));
  std::filesystem::create_symlink("folder/f", link);
  REQUIRE(replace_file(link, "new"));
  CHECK(std::filesystem::is_symlink(link));
  CHECK(read_file(target, 100).value() == "new");
  const std::filesystem::directory_iterator entries(directory.path + "/folder");
  CHECK(std::distance(begin(entries), end(entries)) == 1);
}

TEST_CASE("a link to nothing is not replaced, nor is there anything then") {
  Directory directory;
  const std::string link = directory.path + "/link";
  std::filesystem::create_symlink("nothing", link);
  const Status replaced = replace_file(link, "new");
  REQUIRE_FALSE(replaced);
  CHECK(replaced.error().kind == ErrorKind::invalid);
  CHECK(std::filesystem::is_symlink(link));
  CHECK_FALSE(std::filesystem::exists(link));
}
