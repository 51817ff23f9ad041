#include "agent/server/instance_lock.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <optional>

#include "tests/agent/temporary_directory.h"

using namespace cgphase;

TEST_CASE("the first daemon gets the lock and a missing directory") {
  const TemporaryDirectory tmp;
  const auto lock = InstanceLock::acquire(tmp / "run");
  REQUIRE(lock);
  struct stat status {};
  REQUIRE(::fstat(lock->directory_fd(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0750);
}

TEST_CASE("a second daemon is refused, and the error names the owner of the lock") {
  const TemporaryDirectory tmp;
  const auto first = InstanceLock::acquire(tmp / "run");
  REQUIRE(first);
  const auto second = InstanceLock::acquire(tmp / "run");
  REQUIRE_FALSE(second);
  CHECK(second.error().kind == ErrorKind::invalid);
  CHECK(second.error().text == "another cgphased (pid " + std::to_string(::getpid()) +
                                   ") runs in " + (tmp / "run") +
                                   "; stop it first, or name another --runtime-dir");
}

TEST_CASE("the lock is free again when its daemon is gone") {
  const TemporaryDirectory tmp;
  std::optional first = InstanceLock::acquire(tmp / "run");
  REQUIRE(*first);
  first.reset();
  CHECK(InstanceLock::acquire(tmp / "run"));
}

TEST_CASE("a lock file with hostile content does not disturb the message") {
  const TemporaryDirectory tmp;
  const auto first = InstanceLock::acquire(tmp / "run");
  REQUIRE(first);
  std::ofstream(tmp / "run/lock") << std::string(1000, '\x1b');
  const auto second = InstanceLock::acquire(tmp / "run");
  REQUIRE_FALSE(second);
  CHECK(second.error().text.starts_with("another cgphased runs in "));
}

// rule: SEC-04
TEST_CASE("a runtime directory that others may write to is refused") {
  const TemporaryDirectory tmp;
  REQUIRE(::mkdir((tmp / "run").c_str(), 0700) == 0);
  REQUIRE(::chmod((tmp / "run").c_str(), 0777) == 0);
  const auto lock = InstanceLock::acquire(tmp / "run");
  REQUIRE_FALSE(lock);
  CHECK(lock.error().kind == ErrorKind::denied);
}

// rule: SEC-04
TEST_CASE("a runtime directory that is a link is refused") {
  const TemporaryDirectory tmp;
  REQUIRE(::mkdir((tmp / "real").c_str(), 0700) == 0);
  REQUIRE(::symlink((tmp / "real").c_str(), (tmp / "run").c_str()) == 0);
  CHECK_FALSE(InstanceLock::acquire(tmp / "run"));
}

TEST_CASE("a lock file that is a link is not followed") {
  const TemporaryDirectory tmp;
  REQUIRE(::mkdir((tmp / "run").c_str(), 0700) == 0);
  REQUIRE(::symlink((tmp / "target").c_str(), (tmp / "run/lock").c_str()) == 0);
  CHECK_FALSE(InstanceLock::acquire(tmp / "run"));
  CHECK(::access((tmp / "target").c_str(), F_OK) != 0);
}

TEST_CASE("a runtime directory without a parent is an error that names it") {
  const TemporaryDirectory tmp;
  const auto lock = InstanceLock::acquire(tmp / "no/run");
  REQUIRE_FALSE(lock);
  CHECK(lock.error().text.find(tmp / "no/run") != std::string::npos);
}
