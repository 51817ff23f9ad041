#include "collectors/unit_resets.h"

#include <fcntl.h>

#include "tests/collectors/fake_tree.h"

using namespace cgphase;

namespace {

const std::string kUnit = "docker-" + std::string(64, 'a') + ".scope";
const std::string kReload = "/run/systemd/systemd-units-load";
const std::string kProperties = "/run/systemd/transient/" + kUnit + ".d";

ContainerInfo container(Engine engine, const std::string& path, bool systemd_unit = true) {
  ContainerInfo info;
  info.engine = engine;
  info.path = path;
  info.systemd_unit = systemd_unit;
  return info;
}

Limits memory_limit(std::uint64_t bytes) {
  Limits limits;
  limits.memory_max = MemoryLimit{Bytes{bytes}};
  return limits;
}

MonotonicTime at(int second) { return MonotonicTime(std::chrono::seconds(second)); }

// As touch_file() of systemd: the times it sets are those of the reload.
void touch(const FakeTree& tree, int second) {
  if (!std::filesystem::exists(tree.root() + kReload)) tree.write(kReload, "");
  const timespec time{second, 0}, both[] = {time, time};
  REQUIRE(::utimensat(AT_FDCWD, (tree.root() + kReload).c_str(), both, 0) == 0);
}

// As systemd does: a new file takes the place of the old one.
void set_property(const FakeTree& tree, const std::string& text) {
  tree.write(kProperties + "/.new", text);
  std::filesystem::rename(tree.root() + kProperties + "/.new",
                          tree.root() + kProperties + "/50-CPUQuota.conf");
}

}  // namespace

TEST_CASE("a mark tells once of what was made, touched, replaced or removed") {
  FakeTree tree;
  ChangeMark mark(tree.root() + kReload);
  CHECK_FALSE(mark.changed());
  for (int reload = 1; reload <= 3; ++reload) {
    touch(tree, reload);
    CHECK(mark.changed());
    CHECK_FALSE(mark.changed());
  }
  tree.remove(kReload);
  CHECK(mark.changed());
  CHECK_FALSE(mark.changed());
}

TEST_CASE("what was there before the first look is no change") {
  FakeTree tree;
  touch(tree, 1);
  CHECK_FALSE(ChangeMark(tree.root() + kReload).changed());
  ReloadWatch reloads(tree.root());
  reloads.look(at(1));
  CHECK_FALSE(reloads.last().has_value());
}

TEST_CASE("what cannot be looked at did not change") {
  FakeTree tree;
  touch(tree, 1);
  ChangeMark mark(tree.root() + kReload);
  std::filesystem::rename(tree.root() + "/run", tree.root() + "/kept");
  std::filesystem::create_symlink("run", tree.root() + "/run");  // ELOOP
  CHECK_FALSE(mark.changed());
  std::filesystem::remove(tree.root() + "/run");
  std::filesystem::rename(tree.root() + "/kept", tree.root() + "/run");
  CHECK_FALSE(mark.changed());
}

TEST_CASE("a reload is told of for units of the system's manager, and for them alone") {
  FakeTree tree;
  ReloadWatch reloads(tree.root());
  UnitResets scope(container(Engine::docker, "/system.slice/" + kUnit), tree.root());
  UnitResets service(container(Engine::service, "/system.slice/a.service"), tree.root());
  UnitResets inner(container(Engine::podman, "/machine.slice/" + kUnit + "/container", false),
                   tree.root());
  UnitResets rootless(container(Engine::podman, "/user.slice/user-1.slice/user@1.service/" + kUnit),
                      tree.root());
  CHECK_FALSE(scope.last({}, at(1), reloads).has_value());
  touch(tree, 1);
  reloads.look(at(2));
  CHECK(scope.last({}, at(2), reloads) == at(2));
  CHECK(service.last({}, at(2), reloads) == at(2));
  CHECK_FALSE(inner.last({}, at(2), reloads).has_value());
  CHECK_FALSE(rootless.last({}, at(2), reloads).has_value());
  reloads.look(at(3));
  CHECK(scope.last({}, at(3), reloads) == at(2));
}

TEST_CASE("an engine's own update is told of with the change that it makes") {
  FakeTree tree;
  const ReloadWatch reloads(tree.root());
  UnitResets scope(container(Engine::docker, "/system.slice/" + kUnit), tree.root());
  CHECK_FALSE(scope.last(memory_limit(8), at(1), reloads).has_value());
  CHECK_FALSE(scope.last(memory_limit(6), at(2), reloads).has_value());  // we, or an echo
  set_property(tree, "CPUQuota=40%");
  CHECK(scope.last(memory_limit(8), at(3), reloads) == at(3));
  CHECK(scope.last(memory_limit(6), at(4), reloads) == at(3));
  set_property(tree, "CPUQuota=50%");
  CHECK(scope.last(memory_limit(8), at(5), reloads) == at(5));
}

TEST_CASE("what people set on a service or another cgroup is their intent") {
  FakeTree tree;
  const ReloadWatch reloads(tree.root());
  for (const Engine engine : {Engine::service, Engine::cgroup}) {
    UnitResets unit(container(engine, "/system.slice/" + kUnit), tree.root());
    CHECK_FALSE(unit.last(memory_limit(8), at(1), reloads).has_value());
    set_property(tree, "CPUQuota=40%");
    CHECK_FALSE(unit.last(memory_limit(6), at(2), reloads).has_value());
  }
}
