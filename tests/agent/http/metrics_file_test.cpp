#include "agent/http/metrics_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/file.h"
#include "tests/agent/comes_true.h"
#include "tests/agent/temporary_directory.h"

using namespace cgphase;

namespace {

std::string content_of(const std::string& path) { return read_file(path, 4096).value_or("(none)"); }

}  // namespace

TEST_CASE("a metrics file is replaced whole, is for all to read, and leaves nothing beside it") {
  const TemporaryDirectory tmp;
  const std::string path = tmp / "cgphase.prom";
  const mode_t old = ::umask(0077);
  REQUIRE(replace_shared_file(path, "one\n"));
  ::umask(old);
  CHECK(content_of(path) == "one\n");
  REQUIRE(replace_shared_file(path, "two\n"));
  CHECK(content_of(path) == "two\n");
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0644);
  const std::filesystem::directory_iterator files(tmp / "");
  CHECK(std::distance(begin(files), end(files)) == 1);
}

TEST_CASE("a link in the place of a metrics file is replaced, not followed") {
  const TemporaryDirectory tmp;
  std::ofstream(tmp / "other") << "mine";
  std::filesystem::create_symlink(tmp / "other", tmp / "cgphase.prom");
  REQUIRE(replace_shared_file(tmp / "cgphase.prom", "text\n"));
  CHECK(content_of(tmp / "other") == "mine");
  CHECK(content_of(tmp / "cgphase.prom") == "text\n");
}

TEST_CASE("a metrics file goes with the daemon, and what a killed one left, too") {
  const TemporaryDirectory tmp;
  const std::string path = tmp / "cgphase.prom";
  {
    MetricsFile file(path);
    file.put("one\n");
    REQUIRE(comes_true([&] { return content_of(path) == "one\n"; }));
  }
  CHECK(comes_true([&] { return !std::filesystem::exists(path); }));
  std::ofstream(path) << "of another daemon\n";
  std::ofstream(tmp / "other") << "mine";
  { const MetricsFile file(path); }
  CHECK(comes_true([&] { return !std::filesystem::exists(path); }));
  std::filesystem::create_symlink(tmp / "other", path);
  { const MetricsFile file(path); }
  CHECK(comes_true([&] { return !std::filesystem::is_symlink(path); }));
  CHECK(content_of(tmp / "other") == "mine");
}

TEST_CASE("a metrics file that cannot be written says why, until it can") {
  const TemporaryDirectory tmp;
  const std::string path = tmp / "later/cgphase.prom";
  MetricsFile file(path);
  file.put("one\n");
  REQUIRE(comes_true([&] { return !file.failure().empty(); }));
  CHECK(file.failure().find("ENOENT") != std::string::npos);
  std::filesystem::create_directory(tmp / "later");
  file.put("two\n");
  REQUIRE(comes_true([&] { return content_of(path) == "two\n"; }));
  CHECK(comes_true([&] { return file.failure().empty(); }));
}
