#include "collectors/cgroup_tree.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "tests/collectors/fake_tree.h"
#include "tests/few_descriptors.h"

using namespace cgphase;

namespace {

using Watching = CgroupTree::Watching;

CgroupTree open(const FakeTree& fake, Watching watching = Watching::on,
                CgroupTree::Bounds bounds = {}) {
  auto tree = CgroupTree::open(fake.root(), watching, bounds);
  REQUIRE(tree.has_value());
  return std::move(*tree);
}

std::vector<CgroupPath> paths(const TreeChange& change) {
  std::vector<CgroupPath> result;
  for (const auto& one : change.appeared) result.push_back(one.path);
  return result;
}

TreeChange sweep(CgroupTree& tree) {
  TreeChange change;
  tree.sweep(change);
  return change;
}

TreeChange drain(CgroupTree& tree, MonotonicTime now = {}) {
  TreeChange change;
  CHECK_FALSE(tree.drain(change, now));
  return change;
}

MonotonicTime at_second(int second) { return MonotonicTime(std::chrono::seconds(second)); }

const std::string kContainer = "/docker/" + std::string(64, 'a');
const std::string kNeighbour = "/docker/" + std::string(64, 'b');

void make_many(const FakeTree& fake, const std::string& below, int first, int count) {
  for (int i = first; i < first + count; ++i) fake.make(below + "/c" + std::to_string(i));
}

}  // namespace

TEST_CASE("a sweep finds all directories, parents before children") {
  FakeTree fake;
  fake.make("/b/x");
  fake.make("/a/y/z");
  CgroupTree tree = open(fake);
  CHECK(paths(sweep(tree)) == std::vector<CgroupPath>{"/a", "/a/y", "/a/y/z", "/b", "/b/x"});
  CHECK(tree.size() == 5);
}

TEST_CASE("a second sweep of an unchanged tree reports nothing") {
  FakeTree fake;
  fake.make("/a/b");
  CgroupTree tree = open(fake);
  sweep(tree);
  const TreeChange change = sweep(tree);
  CHECK(change.appeared.empty());
  CHECK(change.vanished.empty());
}

TEST_CASE("an event finds a new directory and what was created in it before the watch") {
  FakeTree fake;
  CgroupTree tree = open(fake);
  sweep(tree);
  fake.make("/a/b/c");
  CHECK(paths(drain(tree)) == std::vector<CgroupPath>{"/a", "/a/b", "/a/b/c"});
  fake.make("/a/b/d");
  CHECK(paths(drain(tree)) == std::vector<CgroupPath>{"/a/b/d"});
}

TEST_CASE("without inotify a sweep finds new and removed directories") {
  FakeTree fake;
  fake.make("/old");
  CgroupTree tree = open(fake, Watching::off);
  CHECK(tree.event_fd() == -1);
  const CgroupId old = sweep(tree).appeared.at(0).id;
  fake.make("/new");
  fake.remove("/old");
  CHECK(drain(tree).appeared.empty());
  const TreeChange change = sweep(tree);
  CHECK(paths(change) == std::vector<CgroupPath>{"/new"});
  CHECK(change.vanished == std::vector{old});
}

TEST_CASE("with a directory, all below it is removed") {
  FakeTree fake;
  fake.make("/a/b/c");
  fake.make("/a-b");
  CgroupTree tree = open(fake);
  sweep(tree);
  fake.remove("/a");
  CHECK(drain(tree).vanished.size() == 3);
  CHECK(tree.size() == 1);
}

TEST_CASE("a directory that cannot be opened for lack of descriptors is not gone") {
  FakeTree fake;
  fake.make("/a/x/y");
  fake.make("/a-b");
  fake.make("/b");
  CgroupTree tree = open(fake);
  sweep(tree);
  for (const int more : {0, 1, 2, 3}) {
    const FewDescriptors few(more);
    CHECK(sweep(tree).vanished.empty());
    CHECK((more > 2 || tree.unreadable() > 0));
  }
  fake.make("/c");  // first, or it may get the inode of the removed one
  fake.remove("/a/x/y");
  {
    const FewDescriptors few(0);
    const TreeChange change = drain(tree);
    CHECK(change.vanished.empty());
    CHECK(change.appeared.empty());
  }
  const TreeChange change = sweep(tree);
  CHECK(change.vanished.size() == 1);
  CHECK(paths(change) == std::vector<CgroupPath>{"/c"});
  CHECK(tree.unreadable() == 0);
}

TEST_CASE("a directory that moved away has vanished, and its old watch reports nothing") {
  FakeTree fake;
  fake.make("/a");
  CgroupTree tree = open(fake);
  const CgroupId id = sweep(tree).appeared.at(0).id;
  std::filesystem::rename(fake.root() + "/a", fake.root() + "/b");
  const TreeChange change = drain(tree);
  CHECK(change.vanished == std::vector{id});
  CHECK(paths(change) == std::vector<CgroupPath>{"/b"});
}

// rule: S-02
TEST_CASE("a sweep reports a directory that replaced another") {
  FakeTree fake;
  fake.make("/a");
  CgroupTree tree = open(fake, Watching::off);
  const auto first = sweep(tree).appeared.at(0);
  // Kept open, so that the file system cannot reuse the inode.
  const Result<Fd> held = tree.open_directory(first.path, first.id);
  REQUIRE(held.has_value());
  fake.remove("/a");
  fake.make("/a");
  const TreeChange change = sweep(tree);
  CHECK(change.vanished == std::vector{first.id});
  CHECK(paths(change) == std::vector<CgroupPath>{"/a"});
  CHECK(tree.open_directory(first.path, first.id).error().kind == ErrorKind::gone);
}

TEST_CASE("files and links are not cgroups, also if their events arrive") {
  FakeTree fake;
  fake.make("/real");
  CgroupTree tree = open(fake);
  sweep(tree);
  fake.write("/file", "x");
  std::filesystem::create_directory_symlink(fake.root() + "/real", fake.root() + "/link");
  CHECK(drain(tree).appeared.empty());
  CHECK(sweep(tree).appeared.empty());
}

TEST_CASE("the maximum depth is followed, one level more is counted") {
  FakeTree fake;
  fake.make("/1/2/3/4");
  CgroupTree tree = open(fake, Watching::off, {.depth = 3, .count = 100});
  CHECK(paths(sweep(tree)) == std::vector<CgroupPath>{"/1", "/1/2", "/1/2/3"});
  CHECK(tree.beyond_depth() == 1);
  CgroupTree enough = open(fake, Watching::off, {.depth = 4, .count = 100});
  CHECK(sweep(enough).appeared.size() == 4);
  CHECK(enough.beyond_depth() == 0);
}

TEST_CASE("a path of maximum length is followed, one byte more is counted") {
  FakeTree fake;
  fake.make("/1234/678");
  fake.make("/1234/6789/x");
  CgroupTree tree = open(fake, Watching::off, {.path_bytes = 9});
  CHECK(paths(sweep(tree)) == std::vector<CgroupPath>{"/1234", "/1234/678"});
  CHECK(tree.beyond_depth() == 1);
  fake.remove("/1234/6789");
  CHECK(sweep(tree).appeared.empty());
  CHECK(tree.beyond_depth() == 0);
}

TEST_CASE("the length of a path is that of its printed form") {
  FakeTree fake;
  fake.make("/\x01\x02");
  CgroupTree enough = open(fake, Watching::off, {.path_bytes = 9});
  CHECK(sweep(enough).appeared.size() == 1);
  CgroupTree tree = open(fake, Watching::off, {.path_bytes = 8});
  CHECK(sweep(tree).appeared.empty());
  CHECK(tree.beyond_depth() == 1);
}

TEST_CASE("long names on a deep path are not followed beyond the length limit") {
  FakeTree fake;
  const std::string name = "/" + std::string(255, '\x01');
  std::string path;
  for (std::size_t depth = 0; depth < 4; ++depth) path += name;
  fake.make(path + "/libpod-" + std::string(64, 'a'));
  fake.make("/" + std::string(255, 'a'));
  CgroupTree tree = open(fake);
  CHECK(paths(sweep(tree)) == std::vector<CgroupPath>{name, "/" + std::string(255, 'a')});
  CHECK(tree.beyond_depth() == 1);
}

TEST_CASE("the maximum number of cgroups is known, one more is counted") {
  FakeTree fake;
  for (const char* name : {"/a", "/b", "/c"}) fake.make(name);
  CgroupTree enough = open(fake, Watching::off, {.depth = 3, .count = 3});
  CHECK(sweep(enough).appeared.size() == 3);
  CHECK(enough.beyond_count() == 0);
  fake.make("/d");
  CHECK(sweep(enough).appeared.empty());
  CHECK(enough.beyond_count() == 1);
  fake.remove("/a");
  fake.remove("/b");
  sweep(enough);
  CHECK(sweep(enough).vanished.empty());
  CHECK(enough.beyond_count() == 0);
  CHECK(enough.size() == 2);
}

TEST_CASE("names of any bytes are followed") {
  FakeTree fake;
  const std::string name = "/\x1b]0;x\x07<script>\xff \\ \"";
  fake.make(name);
  CgroupTree tree = open(fake);
  CHECK(paths(sweep(tree)) == std::vector<CgroupPath>{name});
  fake.make(name + "/\xc3\x28");
  CHECK(paths(drain(tree)) == std::vector<CgroupPath>{name + "/\xc3\x28"});
}

TEST_CASE("a root that is a file is refused") {
  FakeTree fake;
  fake.write("/file", "x");
  CHECK_FALSE(CgroupTree::open(fake.root() + "/file").has_value());
}

TEST_CASE("an owner's cgroups up to its quota are known, and one more hides nobody else's") {
  FakeTree fake;
  make_many(fake, kContainer, 0, 3);
  fake.make(kNeighbour + "/x");
  CgroupTree tree = open(fake, Watching::off, {.owner_count = 3});
  CHECK(sweep(tree).appeared.size() == 3 + 4);  // including their parents
  CHECK(tree.owners_in_trouble().empty());
  make_many(fake, kContainer, 3, 1);
  make_many(fake, kNeighbour, 0, 2);
  CHECK(sweep(tree).appeared.size() == 2);
  REQUIRE(tree.owners_in_trouble().size() == 1);
  CHECK(tree.owners_in_trouble()[0].name == kContainer);
  CHECK(tree.owners_in_trouble()[0].count == 3);
  CHECK(tree.owners_in_trouble()[0].beyond == 1);
  fake.remove(kContainer + "/c0");
  fake.remove(kContainer + "/c1");
  sweep(tree);
  sweep(tree);
  CHECK(tree.owners_in_trouble().empty());
  CHECK(tree.owner_of(kContainer) == nullptr);
  REQUIRE(tree.owner_of(kNeighbour + "/x") != nullptr);
  CHECK(tree.owner_of(kNeighbour + "/x")->name == kNeighbour);
}

TEST_CASE("a scan of an owner beyond its quota ends early and keeps known cgroups") {
  FakeTree fake;
  make_many(fake, kContainer, 0, 4);
  CgroupTree tree = open(fake, Watching::off, {.owner_count = 4});
  CHECK(sweep(tree).appeared.size() == 6);
  make_many(fake, kContainer, 4, 40);
  for (int round = 0; round < 3; ++round) {
    const TreeChange change = sweep(tree);
    CHECK(change.appeared.empty());
    CHECK(change.vanished.empty());
    CHECK(tree.owners_in_trouble().at(0).beyond == 5);
  }
}

TEST_CASE("all owners together have half of the known cgroups") {
  FakeTree fake;
  make_many(fake, kContainer, 0, 9);
  for (const char* name : {"/a", "/b", "/c"}) fake.make(name);
  CgroupTree tree = open(fake, Watching::off, {.count = 10});
  CHECK(sweep(tree).appeared.size() == 2 + 5 + 3);
  CHECK(tree.beyond_count() == 0);
}

TEST_CASE("cgroups that one owner makes too fast are scanned later, others immediately") {
  FakeTree fake;
  fake.make(kContainer);
  fake.make(kNeighbour);
  CgroupTree tree = open(fake);
  sweep(tree);
  make_many(fake, kContainer, 0, kOwnerEventBurst);
  CHECK(drain(tree, at_second(1)).appeared.size() == kOwnerEventBurst);
  CHECK(tree.owners_in_trouble().empty());
  make_many(fake, kContainer, kOwnerEventBurst, 10);
  make_many(fake, kNeighbour, 0, 1);
  CHECK(paths(drain(tree, at_second(1))) == std::vector<CgroupPath>{kNeighbour + "/c0"});
  REQUIRE(tree.owners_in_trouble().size() == 1);
  CHECK(tree.owners_in_trouble()[0].delayed);
  // Its changes are not seen, not even by a walk, until the delay is over.
  make_many(fake, kContainer, 1000, 10);  // first, or one may get the inode of the removed one
  fake.remove(kContainer + "/c0");
  CHECK(drain(tree, at_second(2)).appeared.empty());
  TreeChange walked = sweep(tree);
  CHECK((walked.appeared.empty() && walked.vanished.empty()));
  const TreeChange scanned = drain(tree, at_second(1) + kFirstScanDelay);
  CHECK(scanned.appeared.size() == 20);
  CHECK(scanned.vanished.size() == 1);
  CHECK(tree.owners_in_trouble().empty());
}

TEST_CASE("an owner that continues is scanned less and less often, until it was quiet") {
  FakeTree fake;
  fake.make(kContainer);
  CgroupTree tree = open(fake);
  sweep(tree);
  int made = 0;
  MonotonicTime now = at_second(1);
  const auto storm = [&] {
    make_many(fake, kContainer, made, kOwnerEventBurst + 1);
    made += kOwnerEventBurst + 1;
    drain(tree, now);
    REQUIRE(tree.owners_in_trouble().at(0).delayed);
  };
  const auto delay = [&] {
    const MonotonicTime begun = now;
    while (!tree.owners_in_trouble().empty()) drain(tree, now += std::chrono::seconds(1));
    return std::chrono::duration_cast<std::chrono::seconds>(now - begun);
  };
  std::chrono::seconds expected = kFirstScanDelay;
  for (int round = 0; round < 3; ++round, expected *= 2) {
    storm();
    CHECK(delay() == expected);
  }
  now += std::chrono::seconds(kOwnerEventBurst / kOwnerEventsPerSecond);
  storm();
  CHECK(delay() == kFirstScanDelay);
}

TEST_CASE("listen reports changes of cgroup.events and of no other file") {
  FakeTree fake;
  fake.write("/a/cgroup.events", "populated 0\n");
  fake.write("/b/cgroup.events", "populated 0\n");
  CgroupTree tree = open(fake);
  const auto found = sweep(tree).appeared;
  const Fd directory = tree.open_directory("/a", found.at(0).id).value();
  REQUIRE(tree.listen("/a", directory.get(), true));
  fake.write("/a/memory.events", "x");
  fake.write("/b/cgroup.events", "populated 1\n");
  CHECK(drain(tree).woken.empty());
  fake.write("/a/cgroup.events", "populated 1\n");
  const TreeChange change = drain(tree);
  REQUIRE_FALSE(change.woken.empty());
  for (const auto& one : change.woken) CHECK(one.id == found.at(0).id);
  REQUIRE(tree.listen("/a", directory.get(), false));
  fake.write("/a/cgroup.events", "populated 0\n");
  CHECK(drain(tree).woken.empty());
  CHECK_FALSE(tree.listen("/none", directory.get(), true));
}
