#include "cgroupfs/cgroup_directory.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <filesystem>

#include "base/fd.h"
#include "base/file.h"
#include "tests/cgroupfs/fake_cgroup.h"

using namespace cgphase;

TEST_CASE("a plain or missing directory is in no hierarchy") {
  const TemporaryDirectory folder;
  CHECK(hierarchy_of(folder.path()) == Hierarchy::none);
  CHECK(hierarchy_of(folder.path() + "/missing") == Hierarchy::none);
  CHECK(hierarchy_of(-1) == Hierarchy::none);
  CHECK_FALSE(is_cgroup2(-1));
}

TEST_CASE("a directory has one identity by descriptor and by path") {
  const TemporaryDirectory folder;
  const auto fd = open_path(folder.path(), O_RDONLY | O_DIRECTORY);
  REQUIRE(fd.has_value());
  REQUIRE(identify(fd->get()).has_value());
  CHECK(*identify(fd->get()) == *identify(folder.path()));
  CHECK(identify(folder.path() + "/missing").error().kind == ErrorKind::not_found);
  CHECK_FALSE(identify(-1).has_value());
}

TEST_CASE("a new directory at the same path has another identity, and the old one is not alive") {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/box";
  std::filesystem::create_directory(path);
  const auto fd = open_path(path, O_RDONLY | O_DIRECTORY);
  REQUIRE(fd.has_value());
  const CgroupId first = identify(fd->get()).value();
  CHECK(directory_alive(fd->get()));
  std::filesystem::rename(path, path + ".old");
  std::filesystem::create_directory(path);
  CHECK(identify(path).value() != first);
  std::filesystem::remove(path + ".old");
  CHECK_FALSE(directory_alive(fd->get()));
}
