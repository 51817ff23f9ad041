#include "collectors/ebpf/cgroup_paths.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "collectors/cgroup_tree.h"
#include "tests/collectors/fake_tree.h"

using namespace cgphase;

namespace {

constexpr std::size_t kMany = 100'000;

}  // namespace

TEST_CASE("the root and all cgroups below it are counted, up to the given number") {
  FakeTree tree;
  for (const char* path : {"/a/b", "/a/c", "/d"}) tree.make(path);
  tree.write("/a/file", "");
  tree.link("/link", "a");
  const CgroupPaths paths(tree.root());
  CHECK(paths.count(kMany) == 5);
  CHECK(paths.count(5) == 5);
  CHECK(paths.count(4) == 4);
  CHECK(paths.count(1) == 1);
  CHECK(CgroupPaths(tree.root() + "/none").count(kMany) == 1);
}

TEST_CASE("cgroups are counted down to the depth limit, and not deeper") {
  FakeTree tree;
  std::string path;
  for (std::size_t depth = 0; depth < kMaxCgroupDepth; ++depth) path += "/d";
  tree.make(path);
  CHECK(CgroupPaths(tree.root()).count(kMany) == 1 + kMaxCgroupDepth);
  tree.make(path + "/d");
  CHECK(CgroupPaths(tree.root()).count(kMany) == 1 + kMaxCgroupDepth);
}

TEST_CASE("cgroups that vanish during the count do not hide others") {
  constexpr int kStaying = 200, kGoing = 50, kCounts = 50;
  constexpr std::size_t kEnough = 2000;  // some file systems list new entries forever
  FakeTree tree;
  for (int i = 0; i < kStaying; ++i) tree.make("/stays-" + std::to_string(i) + "/below");
  std::atomic<bool> done = false;
  std::thread others([&] {
    const auto path = [&](int i) { return tree.root() + "/goes-" + std::to_string(i); };
    while (!done) {
      for (int i = 0; i < kGoing; ++i) ::mkdir(path(i).c_str(), 0755);
      for (int i = 0; i < kGoing; ++i) ::rmdir(path(i).c_str());
    }
  });
  const CgroupPaths paths(tree.root());
  std::size_t least = kEnough;
  for (int i = 0; i < kCounts; ++i) least = std::min(least, paths.count(kEnough));
  done = true;
  others.join();
  CHECK(least >= 1 + 2 * kStaying);
}
