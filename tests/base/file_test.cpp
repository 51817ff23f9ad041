#include "base/file.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
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
  int entries() const {
    const std::filesystem::directory_iterator all(path);
    return static_cast<int>(std::distance(begin(all), end(all)));
  }
  // The new file before its rename.
  std::string hidden() const {
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (entry.path().filename().string().starts_with(".cgphase-")) return entry.path();
    return {};
  }
};

}  // namespace

TEST_CASE("a file up to the limit is read, a larger one is invalid") {
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

TEST_CASE("replace_file leaves no temporary file behind and sets the mode") {
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

TEST_CASE("a file replaced in pieces keeps its old content until commit") {
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

TEST_CASE("a replacement without commit changes nothing and leaves no file behind") {
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

TEST_CASE("a directory, a pipe or a device is not replaced and stays unchanged") {
  Directory directory;
  const std::string pipe = directory.path + "/pipe", folder = directory.path + "/folder";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  REQUIRE(std::filesystem::create_directory(folder));
  for (const std::string& path : {pipe, folder, std::string("/dev/null")}) {
    const Status replaced = replace_file(path, "new");
    REQUIRE_FALSE(replaced);
    CHECK(replaced.error().kind == ErrorKind::invalid);
    CHECK(replaced.error().text.starts_with(path + ": is not a regular file"));
  }
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(directory.entries() == 2);
}

TEST_CASE("a symbolic link is refused, and its target stays unchanged") {
  Directory directory;
  const std::string link = directory.path + "/link", target = directory.path + "/target";
  SUBCASE("to a file") { REQUIRE(replace_file(target, "mine")); }
  SUBCASE("to nothing") {}
  const std::string before = read_file(target, 100).value_or("none");
  std::filesystem::create_symlink("target", link);
  const int entries = directory.entries();
  const Status replaced = replace_file(link, "new");
  REQUIRE_FALSE(replaced);
  CHECK(replaced.error().kind == ErrorKind::invalid);
  CHECK(replaced.error().text == link + ": is a symbolic link: name the file it points to");
  CHECK(read_file(target, 100).value_or("none") == before);
  CHECK(std::filesystem::is_symlink(link));
  CHECK(directory.entries() == entries);
}

TEST_CASE("a hard link is replaced, and the other name keeps its content") {
  Directory directory;
  const std::string path = directory.path + "/f", other = directory.path + "/other";
  REQUIRE(replace_file(other, "mine"));
  std::filesystem::create_hard_link(other, path);
  REQUIRE(replace_file(path, "new"));
  CHECK(read_file(path, 100).value() == "new");
  CHECK(read_file(other, 100).value() == "mine");
}

TEST_CASE("if the new file is swapped, it is not renamed and the old content stays") {
  Directory directory;
  const std::string path = directory.path + "/f", other = directory.path + "/other";
  REQUIRE(replace_file(path, "old"));
  REQUIRE(replace_file(other, "mine"));
  {
    Result<FileReplacement> file = FileReplacement::create(path);
    REQUIRE(file);
    const std::string temporary = directory.hidden();
    SUBCASE("by a link") {
      std::filesystem::remove(temporary);
      std::filesystem::create_symlink("other", temporary);
    }
    SUBCASE("by another file") {
      std::filesystem::remove(temporary);
      REQUIRE(replace_file(temporary, "planted"));
    }
    SUBCASE("by nothing") { std::filesystem::remove(temporary); }
    REQUIRE(file->write("new"));
    const Status done = file->commit();
    REQUIRE_FALSE(done);
    CHECK(done.error().text.find("another process moved the new file away") != std::string::npos);
  }
  CHECK(read_file(path, 100).value() == "old");
  CHECK(read_file(other, 100).value() == "mine");
}

TEST_CASE("a directory that is replaced by a link after it was opened receives the file") {
  Directory directory;
  const std::string place = directory.path + "/place", moved = directory.path + "/moved";
  const std::string victim = directory.path + "/victim";
  for (const std::string& path : {place, victim})
    REQUIRE(std::filesystem::create_directory(path));
  Result<FileReplacement> file = FileReplacement::create(place + "/f");
  REQUIRE(file);
  std::filesystem::rename(place, moved);
  std::filesystem::create_directory_symlink("victim", place);
  REQUIRE(file->write("new"));
  REQUIRE(file->commit());
  CHECK(std::filesystem::is_empty(victim));
  CHECK(read_file(moved + "/f", 100).value() == "new");
}

TEST_CASE("with two writers the last one wins, and each file is complete") {
  Directory directory;
  const std::string path = directory.path + "/f";
  Result<FileReplacement> first = FileReplacement::create(path);
  Result<FileReplacement> second = FileReplacement::create(path);
  REQUIRE((first && second));
  REQUIRE(first->write("first"));
  REQUIRE(second->write("second"));
  REQUIRE(second->commit());
  CHECK(read_file(path, 100).value() == "second");
  REQUIRE(first->commit());
  CHECK(read_file(path, 100).value() == "first");
  CHECK(directory.entries() == 1);
}

TEST_CASE("on a full disk the old content stays, and no file is left behind") {
  Directory directory;
  const std::string path = directory.path + "/f";
  REQUIRE(replace_file(path, "old"));
  // The kernel refuses to let a file grow, as a full disk does.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const Status replaced = replace_file(path, std::string(8192, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  REQUIRE_FALSE(replaced);
  CHECK(replaced.error().text.starts_with(path + ": "));
  CHECK(read_file(path, 100).value() == "old");
  CHECK(directory.entries() == 1);
}

TEST_CASE("a file with the longest possible name can be replaced") {
  Directory directory;
  const std::string path = directory.path + "/" + std::string(255, 'n');
  REQUIRE(replace_file(path, "old"));
  REQUIRE(replace_file(path, "new"));
  CHECK(read_file(path, 100).value() == "new");
}

TEST_CASE("a path without a file name is refused") {
  for (const char* path : {"", "/", "/tmp/", ".", "..", "/tmp/.."}) {
    CAPTURE(path);
    CHECK(replace_file(path, "x").error().kind == ErrorKind::invalid);
  }
}
