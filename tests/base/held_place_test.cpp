#include "base/held_place.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/file.h"

using namespace cgphase;

namespace {

constexpr uid_t kStranger = 1000, kCaller = 1001;

struct stat directory_of(uid_t owner, mode_t mode) {
  struct stat status{};
  status.st_uid = owner;
  status.st_mode = S_IFDIR | mode;
  return status;
}

// Sets SUDO_UID and restores it on destruction.
class CalledBy {
 public:
  explicit CalledBy(const char* uid) {
    if (const char* before = std::getenv(kName)) before_ = before;
    if (uid != nullptr) ::setenv(kName, uid, 1);
    else ::unsetenv(kName);
  }
  CalledBy(const CalledBy&) = delete;
  CalledBy& operator=(const CalledBy&) = delete;
  ~CalledBy() {
    if (before_) ::setenv(kName, before_->c_str(), 1);
    else ::unsetenv(kName);
  }

 private:
  static constexpr const char* kName = "SUDO_UID";
  std::optional<std::string> before_;
};

// /tmp/X, of root, with `theirs`, which belongs to somebody else.
struct Places {
  Places() {
    char name[] = "/tmp/cgphase-place-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = name;
    theirs = path + "/theirs";
    REQUIRE(std::filesystem::create_directory(theirs));
    REQUIRE(std::filesystem::create_directory(path + "/ours"));
    REQUIRE(::chown(theirs.c_str(), kStranger, kStranger) == 0);
  }
  ~Places() { std::filesystem::remove_all(path); }

  void link(const std::string& at, const std::string& target, uid_t owner) const {
    std::filesystem::create_symlink(target, at);
    REQUIRE(::lchown(at.c_str(), owner, owner) == 0);
  }
  CalledBy nobody{nullptr};
  std::string path, theirs;
};

std::optional<ErrorKind> error_of(const std::string& path, PlaceRule rule) {
  const Result<HeldPlace> place = hold_place(path, rule);
  return place ? std::nullopt : std::optional(place.error().kind);
}

const bool kRoot = ::geteuid() == 0;

}  // namespace

TEST_CASE("a directory is exclusive if only trusted users can change its entries") {
  const uid_t trusted[] = {0, kCaller};
  const auto exclusive = [&](uid_t owner, mode_t mode) {
    return is_exclusive(directory_of(owner, mode), trusted);
  };
  CHECK(exclusive(0, 0755));
  CHECK(exclusive(kCaller, 0700));
  CHECK(exclusive(0, 01777));  // /tmp
  CHECK(exclusive(0, 03775));
  CHECK_FALSE(exclusive(kStranger, 0700));
  CHECK_FALSE(exclusive(kStranger, 01777));  // its owner may remove what others made
  CHECK_FALSE(exclusive(0, 0775));
  CHECK_FALSE(exclusive(0, 0757));
}

TEST_CASE("trusted users are root, this user and, as root, the user who called sudo") {
  const CalledBy caller("1001");
  const std::vector<uid_t> users = trusted_users();
  CHECK(users.size() == (kRoot ? 3 : 2));
  CHECK(users.at(1) == ::geteuid());
  if (kRoot) CHECK(users.at(2) == kCaller);
  for (const char* wrong : {"", "x", "-1", "4294967295", "18446744073709551616"}) {
    CAPTURE(wrong);
    const CalledBy nobody(wrong);
    CHECK(trusted_users().size() == 2);
  }
}

TEST_CASE("a relative path starts at the working directory, and its last element is the name") {
  const Result<HeldPlace> place = hold_place("file.csv", PlaceRule::shared);
  REQUIRE(place);
  CHECK(place->name == "file.csv");
  struct stat held{}, here{};
  REQUIRE(::fstat(place->directory.get(), &held) == 0);
  REQUIRE(::stat(".", &here) == 0);
  CHECK(held.st_ino == here.st_ino);
}

TEST_CASE("a missing directory, or a file instead of a directory, is not found") {
  CHECK(error_of("/nonexistent/f", PlaceRule::exclusive) == ErrorKind::not_found);
  CHECK(error_of("/dev/null/f", PlaceRule::exclusive) == ErrorKind::not_found);
}

TEST_CASE_FIXTURE(Places, "root writes nothing below a directory that another user can change" *
                              doctest::skip(!kRoot)) {
  REQUIRE(std::filesystem::create_directory(theirs + "/deep"));
  for (const std::string& at : {theirs + "/f", theirs + "/deep/f", path + "/ours/../theirs/f"}) {
    CAPTURE(at);
    const Status replaced = replace_file(at, "secret");
    REQUIRE_FALSE(replaced);
    CHECK(replaced.error().kind == ErrorKind::denied);
    CHECK(replaced.error().text.find("write to standard output with -o -") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(at));
  }
  CHECK(error_of(path + "/ours/f", PlaceRule::exclusive) == std::nullopt);
}

TEST_CASE_FIXTURE(Places, "root writes into the directory of the user who called sudo" *
                              doctest::skip(!kRoot)) {
  const CalledBy somebody("1000");
  CHECK(replace_file(theirs + "/f", "text"));
  const CalledBy another("1001");
  CHECK_FALSE(replace_file(theirs + "/f", "text"));
}

TEST_CASE_FIXTURE(Places, "root follows a link to a directory only if no other user can change it" *
                              doctest::skip(!kRoot)) {
  link(theirs + "/link", path + "/ours", kStranger);
  link(path + "/planted", path + "/ours", kStranger);
  link(path + "/mine", "ours", 0);
  link(path + "/loop", "loop", 0);
  for (const PlaceRule rule : {PlaceRule::exclusive, PlaceRule::shared}) {
    CHECK(error_of(theirs + "/link/f", rule) == ErrorKind::denied);
    CHECK(error_of(path + "/planted/f", rule) == ErrorKind::denied);
    CHECK(error_of(path + "/mine/f", rule) == std::nullopt);
    CHECK(error_of(path + "/loop/f", rule) == ErrorKind::io);
  }
}

TEST_CASE_FIXTURE(Places,
                  "a shared file may be in another user's directory, but not behind a link" *
                      doctest::skip(!kRoot)) {
  REQUIRE(replace_shared_file(theirs + "/f.prom", "text"));
  CHECK(read_file(theirs + "/f.prom", 100).value() == "text");
  REQUIRE(replace_file(path + "/ours/secret", "mine"));
  std::filesystem::remove(theirs + "/f.prom");
  link(theirs + "/f.prom", path + "/ours/secret", kStranger);
  REQUIRE(replace_shared_file(theirs + "/f.prom", "text"));
  CHECK(read_file(path + "/ours/secret", 100).value() == "mine");
  CHECK_FALSE(std::filesystem::is_symlink(theirs + "/f.prom"));
}
