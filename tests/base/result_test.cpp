#include "base/result.h"

#include <doctest/doctest.h>

#include <cerrno>

using namespace cgphase;

TEST_CASE("an errno failure names the call, the reason and the errno word") {
  const Status status = errno_failure("/sys/fs/cgroup/x/cpu.max", EACCES);
  REQUIRE_FALSE(status);
  CHECK(status.error().kind == ErrorKind::denied);
  CHECK(status.error().text == "/sys/fs/cgroup/x/cpu.max: Permission denied (EACCES)");
}

TEST_CASE("ENODEV from a removed cgroup is gone") {
  CHECK(kind_of_errno(ENODEV) == ErrorKind::gone);
}
