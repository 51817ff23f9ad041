#include "cgroupfs/cgroup_root.h"

#include <doctest/doctest.h>

#include "tests/cgroupfs/fake_cgroup.h"

using namespace cgphase;

TEST_CASE("a directory with cgroup.controllers is a root and its controllers are read") {
  const TemporaryDirectory root;
  put_file(root.path() + "/cgroup.controllers", "cpuset cpu io memory pids\n");
  const auto found = discover_cgroup_root(root.path());
  REQUIRE_MESSAGE(found, found.error().text);
  CHECK(found->path == root.path());
  CHECK(found->controllers.size() == 5);
  CHECK(found->can_enforce);
  CHECK_FALSE(found->hybrid);
  CHECK(found->reason.empty());
}

TEST_CASE("a directory without cgroup.controllers is no root, and the reason names the remedy") {
  const TemporaryDirectory root;
  const auto found = discover_cgroup_root(root.path());
  CHECK(found.error().kind == ErrorKind::unsupported);
  CHECK(found.error().text.find("--cgroup-root") != std::string::npos);
}

TEST_CASE("a missing directory is not found") {
  CHECK(discover_cgroup_root("/nonexistent/cgroup").error().kind == ErrorKind::not_found);
}

// rule: S-14
TEST_CASE("a host with cpu and memory on cgroup v1 is hybrid and only observed") {
  const CgroupRoot root = judge_cgroup_root("/u", {}, {"cpu", "cpuacct", "memory"});
  CHECK(root.hybrid);
  CHECK_FALSE(root.can_enforce);
  CHECK(root.reason.find("systemd.unified_cgroup_hierarchy=1") != std::string::npos);
}

TEST_CASE("other controllers on cgroup v1 do not matter") {
  const CgroupRoot root = judge_cgroup_root("/u", {"cpu", "memory"}, {"net_cls", "freezer"});
  CHECK_FALSE(root.hybrid);
  CHECK(root.can_enforce);
}

// rule: S-14
TEST_CASE("the reason names a missing controller and the remedy") {
  const CgroupRoot no_memory = judge_cgroup_root("/u", {"cpu", "io"}, {});
  CHECK_FALSE(no_memory.can_enforce);
  CHECK(no_memory.reason.find("cgroup_enable=memory") != std::string::npos);
  const CgroupRoot no_cpu = judge_cgroup_root("/u", {"memory"}, {});
  CHECK_FALSE(no_cpu.can_enforce);
  CHECK(no_cpu.reason.find("cpu") != std::string::npos);
}
