#include "collectors/containers/host_files.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "tests/collectors/fake_tree.h"

using namespace cgphase;

namespace {

constexpr std::size_t kSomeBytes = 100;

ErrorKind error_of(const HostFiles& files, const std::string& path, uid_t owner = 0) {
  const Result<std::string> text = files.read(path, owner, kSomeBytes);
  REQUIRE_FALSE(text.has_value());
  return text.error().kind;
}

}  // namespace

TEST_CASE("of root all links are followed, but none leads out of the host") {
  const FakeTree fake;
  fake.write("/data/docker/file", "here");
  fake.make("/var/lib");
  fake.link("/var/lib/absolute", "/data/docker");
  fake.link("/var/lib/relative", "../../data//docker/");
  fake.link("/var/lib/above", "../../../../../../../../data/docker");
  fake.link("/var/lib/twice", "./absolute");
  fake.link("/var/lib/to-file", "/data/docker/file");
  const HostFiles files(fake.root(), fake.root() + "/proc");
  for (const char* link : {"absolute/file", "relative/file", "above/file", "twice/file", "to-file",
                           "absolute/../docker/./file"}) {
    CAPTURE(link);
    CHECK(files.read(std::string("/var/lib/") + link, 0, kSomeBytes).value_or("") == "here");
  }
  CHECK(files.names_in("/var/lib/twice", 0) == std::vector<std::string>{"file"});
  fake.link("/var/lib/out", fake.root() + "/data/docker/file");
  CHECK(error_of(files, "/var/lib/out") == ErrorKind::not_found);
}

TEST_CASE("what cannot be looked at is not absent") {
  const FakeTree fake;
  fake.write("/etc/file", "here");
  fake.link("/etc/endless", "endless");
  const HostFiles files(fake.root(), fake.root() + "/proc");
  CHECK(files.is_absent("/etc/other"));
  CHECK(files.is_absent("/etc/file/below"));
  CHECK_FALSE(files.is_absent("/etc/file"));
  CHECK_FALSE(files.is_absent("/etc/endless/below"));
  CHECK(error_of(files, "/etc/endless/below") == ErrorKind::invalid);
}

TEST_CASE("of a user no link is followed, and only regular files of the user count") {
  const FakeTree fake;
  const uid_t user = ::geteuid();
  fake.write("/var/ann/file", "hers");
  fake.link("/var/ann/link", "file");
  fake.link("/var/linked", "ann");
  const HostFiles files(fake.root(), fake.root() + "/proc");
  const uid_t asked = user == 0 ? 1000 : user;
  if (user == 0)
    for (const char* name : {"/var/ann", "/var/ann/file"})
      REQUIRE(::chown((fake.root() + name).c_str(), asked, asked) == 0);
  CHECK(files.read("/var/ann/file", asked, kSomeBytes).value_or("") == "hers");
  CHECK(error_of(files, "/var/ann/link", asked) == ErrorKind::invalid);
  CHECK(error_of(files, "/var/linked/file", asked) == ErrorKind::invalid);
  CHECK(error_of(files, "/var/ann", asked) == ErrorKind::invalid);
  CHECK(error_of(files, "/var/ann/file", asked + 1) == ErrorKind::denied);
}
