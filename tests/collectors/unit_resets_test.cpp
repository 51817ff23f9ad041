#include "collectors/unit_resets.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "tests/collectors/fill_inotify.h"
#include "tests/collectors/fake_tree.h"

using namespace cgphase;

namespace {

const std::string kUnit = "docker-" + std::string(64, 'a') + ".scope";
const std::string kFile = "/run/mark";
const std::string kTransient = "/run/systemd/transient/" + kUnit + ".d";

ContainerInfo container(Engine engine, const std::string& path, bool systemd_unit = true) {
  ContainerInfo info;
  info.engine = engine;
  info.path = path;
  info.systemd_unit = systemd_unit;
  return info;
}

MonotonicTime at(int second) { return MonotonicTime(std::chrono::seconds(second)); }

// Sets file times that the caller chooses.
void touch(const FakeTree& tree, int second) {
  if (!std::filesystem::exists(tree.root() + kFile)) tree.write(kFile, "");
  const timespec time{second, 0}, both[] = {time, time};
  REQUIRE(::utimensat(AT_FDCWD, (tree.root() + kFile).c_str(), both, 0) == 0);
}

// As systemd does: a new file replaces the old one.
void set_property(const FakeTree& tree, const std::string& directory) {
  static int count = 0;
  tree.write(directory + "/.new", std::to_string(++count));
  std::filesystem::rename(tree.root() + directory + "/.new",
                          tree.root() + directory + "/50-CPUQuota.conf");
}

// A cgroup whose files are watched.
struct WatchedUnit {
  WatchedUnit(FakeTree& in, const ContainerInfo& info) : tree(in), path("/cg" + info.path) {
    tree.write(path + "/cpu.max", "");
    tree.write(path + "/cpu.idle", "");
    tree.write(path + "/memory.low", "");
    tree.write(path + "/memory.max", "");
    directory = Fd(::open((tree.root() + path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    REQUIRE(directory.valid());
    resets.emplace(info, directory.get(), writes, tree.root());
  }
  void write(const std::string& knob) const { tree.write(path + "/" + knob, "0\n"); }
  std::optional<MonotonicTime> last(MonotonicTime now) {
    writes.poll();
    return resets->last(now);
  }

  FakeTree& tree;
  std::string path;
  Fd directory;
  WriteWatch writes;
  std::optional<UnitResets> resets;
};

}  // namespace

TEST_CASE("a mark reports a created, touched, replaced or removed file once") {
  FakeTree tree;
  ChangeMark mark(tree.root() + kFile);
  CHECK_FALSE(mark.changed());
  for (int time = 1; time <= 3; ++time) {
    touch(tree, time);
    CHECK(mark.changed());
    CHECK_FALSE(mark.changed());
  }
  tree.remove(kFile);
  CHECK(mark.changed());
  CHECK_FALSE(mark.changed());
}

TEST_CASE("files from before the first read are no change") {
  FakeTree tree;
  touch(tree, 1);
  CHECK_FALSE(ChangeMark(tree.root() + kFile).changed());
}

TEST_CASE("an unreadable file did not change") {
  FakeTree tree;
  touch(tree, 1);
  ChangeMark mark(tree.root() + kFile);
  std::filesystem::rename(tree.root() + "/run", tree.root() + "/kept");
  std::filesystem::create_symlink("run", tree.root() + "/run");  // ELOOP
  CHECK_FALSE(mark.changed());
  std::filesystem::remove(tree.root() + "/run");
  std::filesystem::rename(tree.root() + "/kept", tree.root() + "/run");
  CHECK_FALSE(mark.changed());
}

TEST_CASE("a write is reported once, and only for its file") {
  FakeTree tree;
  tree.write("/a/knob", "");
  tree.write("/b/knob", "");
  const Fd a(::open((tree.root() + "/a").c_str(), O_RDONLY | O_CLOEXEC));
  const Fd b(::open((tree.root() + "/b").c_str(), O_RDONLY | O_CLOEXEC));
  WriteWatch writes;
  WriteWatch::File first(writes, a.get(), "knob"), second(writes, b.get(), "knob");
  WriteWatch::File absent(writes, a.get(), "none");
  CHECK(writes.unwatched() == 0);
  tree.write("/a/knob", "1");
  CHECK_FALSE(first.written());  // not polled yet
  writes.poll();
  CHECK(first.written());
  CHECK_FALSE(first.written());
  CHECK_FALSE(second.written());
  CHECK_FALSE(absent.written());
  WriteWatch::File moved(std::move(second));
  tree.write("/b/knob", "1");
  writes.poll();
  CHECK(moved.written());
}

TEST_CASE("an existing file that cannot be watched is counted") {
  FakeTree tree;
  tree.write("/a/knob", "");
  const Fd file(::open((tree.root() + "/a/knob").c_str(), O_RDONLY | O_CLOEXEC));
  WriteWatch writes;
  {
    WriteWatch::File below_a_file(writes, file.get(), "knob");
    const WriteWatch::File moved(std::move(below_a_file));
    CHECK(writes.unwatched() == 1);
  }
  CHECK(writes.unwatched() == 0);
}

TEST_CASE("a file that could not be watched is watched on a retry") {
  FakeTree tree;
  tree.write("/a/knob", "");
  tree.write("/file", "");
  const Fd file(::open((tree.root() + "/file").c_str(), O_RDONLY | O_CLOEXEC));
  const Fd a(::open((tree.root() + "/a").c_str(), O_RDONLY | O_CLOEXEC));
  WriteWatch writes;
  WriteWatch::File knob(writes, file.get(), "knob");
  CHECK(writes.unwatched() == 1);
  knob.watch_again(file.get());
  CHECK(writes.unwatched() == 1);
  knob.watch_again(a.get());
  CHECK(writes.unwatched() == 0);
  knob.watch_again(file.get());  // it stays watched
  CHECK(writes.unwatched() == 0);
  tree.write("/a/knob", "1");
  writes.poll();
  CHECK(knob.written());
}

TEST_CASE("a missing inotify instance is created on a retry") {
  FakeTree tree;
  tree.write("/a/knob", "");
  const Fd a(::open((tree.root() + "/a").c_str(), O_RDONLY | O_CLOEXEC));
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit none{0, limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  WriteWatch writes;
  WriteWatch::File knob(writes, a.get(), "knob");
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(writes.unwatched() == 1);
  knob.watch_again(a.get());
  CHECK(writes.unwatched() == 0);
  tree.write("/a/knob", "1");
  writes.poll();
  CHECK(knob.written());
}

TEST_CASE("inotify overflows are counted, and later writes are reported again") {
  FakeTree tree;
  for (const char* knob : {"/a/first", "/a/second", "/a/late"}) tree.write(knob, "");
  const Fd a(::open((tree.root() + "/a").c_str(), O_RDONLY | O_CLOEXEC));
  WriteWatch writes;
  WriteWatch::File first(writes, a.get(), "first"), second(writes, a.get(), "second");
  WriteWatch::File late(writes, a.get(), "late");
  fill_inotify(tree.root() + "/a/first", tree.root() + "/a/second");
  tree.write("/a/late", "1");
  CHECK(writes.overflows() == 0);
  writes.poll();
  CHECK(writes.overflows() == 1);
  CHECK(first.written());
  CHECK_FALSE(late.written());
  tree.write("/a/late", "2");
  writes.poll();
  CHECK(writes.overflows() == 1);
  CHECK(late.written());
}

TEST_CASE("limits that systemd rewrote are reported for every knob") {
  for (const char* knob : {"cpu.idle", "memory.low"}) {
    FakeTree tree;
    WatchedUnit scope(tree, container(Engine::docker, "/system.slice/" + kUnit));
    CHECK_FALSE(scope.last(at(1)).has_value());
    scope.write(knob);
    CHECK(scope.last(at(2)) == at(2));
    CHECK(scope.last(at(3)) == at(2));
    scope.write(knob);
    CHECK(scope.last(at(4)) == at(4));
  }
}

TEST_CASE("a single write of a limit is no reset") {
  FakeTree tree;
  WatchedUnit scope(tree, container(Engine::docker, "/system.slice/" + kUnit));
  scope.write("cpu.max");
  scope.write("memory.max");
  CHECK_FALSE(scope.last(at(1)).has_value());
}

TEST_CASE("limits of a cgroup that is no systemd unit are never reported as reset") {
  const std::string user = "/user.slice/user-1.slice/user@1.service/";
  const ContainerInfo none[] = {
      container(Engine::podman, "/machine.slice/" + kUnit + "/container", false),
      container(Engine::service, user + "a.service")};
  for (const ContainerInfo& info : none) {
    FakeTree tree;
    WatchedUnit unit(tree, info);
    unit.write("memory.low");
    CHECK_FALSE(unit.last(at(1)).has_value());
  }
  FakeTree tree;
  WatchedUnit rootless(tree, container(Engine::podman, user + kUnit));
  rootless.write("memory.low");
  CHECK(rootless.last(at(1)) == at(1));
}

TEST_CASE("properties that people set on a service or another cgroup are intended") {
  for (const char* directory : {"/run/systemd/transient/", "/run/systemd/system.control/",
                                "/etc/systemd/system.control/"}) {
    for (const Engine engine : {Engine::service, Engine::cgroup}) {
      FakeTree tree;
      WatchedUnit unit(tree, container(engine, "/system.slice/" + kUnit));
      set_property(tree, directory + kUnit + ".d");
      unit.write("memory.low");
      CHECK_FALSE(unit.last(at(1)).has_value());
      unit.write("memory.low");  // a reload
      CHECK(unit.last(at(2)) == at(2));
      set_property(tree, directory + kUnit + ".d");
      unit.write("memory.low");
      CHECK(unit.last(at(3)) == at(2));
    }
  }
}

TEST_CASE("properties that people set on the unit of a Quadlet are intended") {
  FakeTree tree;
  WatchedUnit unit(tree, container(Engine::podman, "/system.slice/web.service"));
  set_property(tree, "/run/systemd/system.control/web.service.d");
  unit.write("memory.low");
  CHECK_FALSE(unit.last(at(1)).has_value());
  unit.write("memory.low");  // a reload
  CHECK(unit.last(at(2)) == at(2));
}

TEST_CASE("an engine's own update is reported with the limits that it resets") {
  FakeTree tree;
  WatchedUnit scope(tree, container(Engine::docker, "/system.slice/" + kUnit));
  set_property(tree, kTransient);
  scope.write("memory.low");
  CHECK(scope.last(at(1)) == at(1));
}
