#include "collectors/process_cgroup.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "tests/collectors/fake_tree.h"

using namespace cgphase;

namespace {

// A mount of cgroup v2 that contains "/a/b".
struct Mounted : FakeTree {
  std::string mount;

  Mounted() {
    make("/mount/a/b");
    mount = std::filesystem::canonical(root() + "/mount");
  }
  // `lines`: the text after the three numbers, "TOP POINT" of each.
  void say(std::initializer_list<std::string> lines) const {
    std::string text = "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n";
    for (const std::string& line : lines)
      text += "30 25 0:26 " + line + " rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
    write("/proc/self/mountinfo", text);
  }
  CgroupPath of(const std::string& directory) const {
    return kernel_path_of_root(root() + "/proc", directory);
  }
};

}  // namespace

TEST_CASE("path_below returns the rest of a path below another, and nothing outside") {
  CHECK(path_below("/a/b", "/a") == "/b");
  CHECK(path_below("/a", "/a") == "/");
  CHECK(path_below("/a/b", "") == "/a/b");
  CHECK(path_below("/", "") == "/");
  CHECK(path_below("/ab", "/a").empty());
  CHECK(path_below("/", "/a").empty());
  CHECK(path_below("", "").empty());
}

TEST_CASE("the kernel's path of a root is relative to the top of its mount") {
  const Mounted node;
  node.say({"/ " + node.mount});
  CHECK(node.of(node.mount).empty());
  CHECK(node.of(node.mount + "/a") == "/a");
  CHECK(node.of(node.mount + "/a/../a/b/") == "/a/b");
  CHECK(node.of(node.root()).empty());
}

TEST_CASE("a mount may begin below the top, and the innermost of several counts") {
  const Mounted node;
  node.say({"/top " + node.mount});
  CHECK(node.of(node.mount) == "/top");
  CHECK(node.of(node.mount + "/a") == "/top/a");
  node.say({"/x " + node.mount + "/a", "/ " + node.mount});
  CHECK(node.of(node.mount + "/a/b") == "/x/b");
  node.say({"/x\\134x2dy\\040z " + node.mount});
  CHECK(node.of(node.mount) == "/x\\x2dy z");
}

TEST_CASE("without a cgroup v2 mount that contains it, or without mountinfo, a root is the top") {
  const Mounted node;
  CHECK(node.of(node.mount + "/a").empty());
  node.say({});
  CHECK(node.of(node.mount + "/a").empty());
  node.say({"/ /elsewhere"});
  CHECK(node.of(node.mount + "/a").empty());
  CHECK(node.of("").empty());
  node.write("/proc/self/mountinfo", "30 - cgroup2 \n - cgroup2 \n\n30 25 0:26 / - cgroup2 c\n");
  CHECK(node.of(node.mount + "/a").empty());
}

TEST_CASE("a process has the cgroup of its v2 line, and none without such a line") {
  const FakeTree tree;
  tree.write("/11/cgroup", "9:name=systemd:/x\n0::/system.slice/docker-a.scope\n");
  tree.write("/12/cgroup", "9:name=systemd:/x\n0:\n");
  CHECK(cgroup_of_process(tree.root() + "/11") == "/system.slice/docker-a.scope");
  CHECK(cgroup_of_process(tree.root() + "/12").empty());
  CHECK(cgroup_of_process(tree.root() + "/13").empty());
}
