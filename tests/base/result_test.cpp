#include "base/result.h"

#include <doctest/doctest.h>

#include <cerrno>

using namespace cgphase;

TEST_CASE("a failed call tells what, why and the errno word") {
  const Status status = errno_failure("/sys/fs/cgroup/x/cpu.max", EACCES);
  REQUIRE_FALSE(status);
  CHECK(status.error().kind == ErrorKind::denied);
  CHECK(status.error().text == "/sys/fs/cgroup/x/cpu.max: Permission denied (EACCES)");
}

TEST_CASE("a cgroup removed under a held descriptor is gone") {
  CHECK(kind_of_errno(ENODEV) == ErrorKind::gone);
}
