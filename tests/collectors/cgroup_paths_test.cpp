#include "collectors/ebpf/cgroup_paths.h"

#include <doctest/doctest.h>

#include "tests/collectors/fake_tree.h"

using namespace cgphase;

TEST_CASE("the root and all cgroups below it are counted, up to the given number") {
  FakeTree tree;
  const CgroupPaths paths(tree.root());
  CHECK(paths.count(100) == 1);
  tree.write("/cgroup.stat", "nr_descendants 4\nnr_dying_descendants 7\n");
  CHECK(paths.count(100) == 5);
  CHECK(paths.count(5) == 5);
  CHECK(paths.count(4) == 4);
  CHECK(paths.count(1) == 1);
  CHECK(CgroupPaths(tree.root() + "/none").count(100) == 1);
}
