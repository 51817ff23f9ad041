// Layouts in which the container, its name or its limits are not where the path suggests.
#include <map>
#include <string>

#include "collectors/node_sampler.h"
#include "tests/collectors/bolt_bytes.h"
#include "tests/collectors/fake_node.h"

using namespace cgphase;

namespace {

constexpr const char* kLimit = "1073741824\n";

std::map<CgroupPath, ContainerInfo> found_by_path(const NodeSample& tick) {
  std::map<CgroupPath, ContainerInfo> found;
  for (const ContainerInfo& one : tick.appeared) found[one.path] = one;
  return found;
}

const std::string kQuadlet = "/system.slice/web.service";
const std::string kInUnit = kQuadlet + "/libpod-payload-" + kOtherId;

}  // namespace

TEST_CASE("a container of Proxmox VE is read and written at its outer cgroup") {
  Node node;
  node.make("/cg/lxc/101/ns/system.slice/docker-" + kDockerId + ".scope");
  node.make("/cg/lxc.monitor/101");
  node.write("/cg/lxc/101/memory.max", kLimit);
  node.write("/etc/pve/lxc/101.conf", "hostname: web\n");
  node.make("/cg/qemu.slice/200.scope");
  NodeSampler sampler = node.open();
  const auto found = found_by_path(node.sample(sampler));
  REQUIRE(found.size() == 2);
  const ContainerInfo& container = found.at("/lxc/101");
  CHECK(container.engine == Engine::lxc);
  CHECK(container.name == "web");
  CHECK(container.engine_id == "101");
  CHECK(container.hands_off.empty());
  CHECK_FALSE(container.systemd_unit);  // what `pct set` writes is never taken for a reset
  CHECK(found.at("/qemu.slice/200.scope").engine == Engine::qemu);
  CHECK(found.at("/qemu.slice/200.scope").hands_off == "a virtual machine");
}

TEST_CASE("a container in a unit is read and written where the limits are") {
  Node node;
  node.make("/cg" + kInUnit);
  node.make("/cg" + kQuadlet + "/runtime");
  node.write("/cg" + kQuadlet + "/memory.max", kLimit);
  node.write_engine_files();
  NodeSampler sampler = node.open();
  REQUIRE(node.sample(sampler).appeared.size() == 1);
  const ContainerInfo container = node.tick.appeared[0];
  CHECK(container.path == kQuadlet);
  CHECK(container.engine == Engine::podman);
  CHECK(container.engine_id == kOtherId);
  CHECK(container.name == "db");
  CHECK(container.systemd_unit);
  CHECK(node.tick.containers.at(0).limits.memory_bytes()->value == 1073741824);
}

TEST_CASE("a container in a unit is read at its own cgroup if it or nothing has limits") {
  for (const bool own : {false, true}) {
    Node node;
    node.make("/cg" + kInUnit);
    if (own) {
      node.write("/cg" + kInUnit + "/cpu.max", "50000 100000\n");
      node.write("/cg" + kQuadlet + "/memory.max", kLimit);
    }
    NodeSampler sampler = node.open();
    REQUIRE(node.sample(sampler).appeared.size() == 1);
    CHECK(node.tick.appeared[0].path == kInUnit);
  }
}

TEST_CASE("a unit that gets its first limit later is read and written from the next sweep on") {
  Node node;
  node.make("/cg" + kInUnit);
  NodeSampler sampler = node.open();
  const CgroupId payload = found_by_path(node.sample(sampler)).at(kInUnit).id;
  node.write("/cg" + kQuadlet + "/memory.max", kLimit);
  CHECK(node.sample(sampler).appeared.empty());
  node.clock.advance(std::chrono::seconds(60));
  REQUIRE(found_by_path(node.sample(sampler)).count(kQuadlet) == 1);
  CHECK(node.tick.vanished == std::vector{payload});
  CHECK(node.tick.containers.at(0).limits.memory_bytes()->value == 1073741824);
  node.clock.advance(std::chrono::seconds(60));
  CHECK(node.sample(sampler).appeared.empty());
}

TEST_CASE("a unit ends with the container in it, and serves the next one") {
  Node node;
  node.make("/cg" + kInUnit);
  node.write("/cg" + kQuadlet + "/memory.max", kLimit);
  NodeSampler sampler = node.open({"/system.slice/*.service"});
  const auto found = found_by_path(node.sample(sampler));
  REQUIRE(found.size() == 1);
  const CgroupId id = found.at(kQuadlet).id;
  CHECK(found.at(kQuadlet).engine == Engine::podman);
  node.remove("/cg" + kInUnit);
  node.sample(sampler);
  CHECK(node.tick.vanished == std::vector{id});
  for (int tick = 0; tick < 2; ++tick) node.sample(sampler);
  const std::string next = kQuadlet + "/libpod-payload-" + kDockerId;
  node.make("/cg" + next);
  node.sample(sampler);
  REQUIRE(node.tick.appeared.size() == 1);
  CHECK(node.tick.appeared[0].path == kQuadlet);
  CHECK(node.tick.appeared[0].engine_id == kDockerId);
  CHECK(node.tick.containers.size() == 1);
}

TEST_CASE("of two containers in one unit only one can have its limits") {
  Node node;
  node.make("/cg" + kInUnit);
  node.make("/cg" + kQuadlet + "/libpod-payload-" + kDockerId);
  node.write("/cg" + kQuadlet + "/memory.max", kLimit);
  NodeSampler sampler = node.open();
  CHECK(node.sample(sampler).appeared.size() == 2);
  CHECK(node.tick.containers.size() == 2);
}

TEST_CASE("LXC gives a container another cgroup if its own was left over") {
  Node node;
  for (const char* path : {"/lxc.payload.web", "/lxc.payload.web-1", "/lxc.payload.app-1",
                           "/lxc.payload.own", "/lxc.payload.own-2"})
    node.write("/cg" + std::string(path) + "/cgroup.events", "populated 1\n");
  node.write("/cg/lxc.payload.web/cgroup.events", "populated 0\n");
  node.make("/var/lib/lxc/own-2");
  node.make("/var/lib/lxc/app");
  NodeSampler sampler = node.open();
  const auto found = found_by_path(node.sample(sampler));
  REQUIRE(found.size() == 4);
  CHECK(found.at("/lxc.payload.web-1").name == "web");
  CHECK(found.at("/lxc.payload.web-1").engine_id == "web");
  CHECK(found.at("/lxc.payload.app-1").name == "app");
  CHECK(found.at("/lxc.payload.own-2").name == "own-2");
}

TEST_CASE("LXC's living container replaces the one that left its cgroup") {
  Node node;
  node.write("/cg/lxc.payload.web/cgroup.events", "populated 1\n");
  NodeSampler sampler = node.open();
  const CgroupId id = node.sample(sampler).appeared.at(0).id;
  node.write("/cg/lxc.payload.web/cgroup.events", "populated 0\n");
  node.sample(sampler);
  node.write("/cg/lxc.payload.web-1/cgroup.events", "populated 1\n");
  CHECK(node.sample(sampler).vanished == std::vector{id});
  CHECK(node.tick.appeared.at(0).path == "/lxc.payload.web-1");
  CHECK(node.tick.appeared.at(0).name == "web");
  CHECK(node.tick.containers.size() == 1);
}

TEST_CASE("crun's inner cgroup with any name represents its scope if it has the limits") {
  const std::string scope = "/machine.slice/libpod-" + kOtherId + ".scope";
  const auto path_with = [&](const char* outer, const char* inner) {
    Node node;
    node.make("/cg" + scope + "/job");
    if (*outer != '\0') node.write("/cg" + scope + "/memory.max", outer);
    if (*inner != '\0') node.write("/cg" + scope + "/job/memory.max", inner);
    NodeSampler sampler = node.open();
    REQUIRE(node.sample(sampler).appeared.size() == 1);
    return node.tick.appeared[0].path;
  };
  CHECK(path_with("max\n", kLimit) == scope + "/job");
  CHECK(path_with(kLimit, kLimit) == scope + "/job");
  CHECK(path_with(kLimit, "1048576\n") == scope);
  CHECK(path_with(kLimit, "max\n") == scope);
  CHECK(path_with("max\n", "max\n") == scope);
}

TEST_CASE("a container of containerd is found in any namespace, and nothing below it") {
  Node node;
  const std::string tasks = "/run/containerd/io.containerd.runtime.v2.task/";
  node.make("/cg/ci/app/docker-" + kDockerId + ".scope");
  node.make("/cg/ci/other");
  node.make("/cg/k8s.io/" + kOtherId);
  node.write(tasks + "ci/app/config.json", "{}");
  node.write(tasks + "k8s.io/" + kOtherId + "/config.json",
             R"({"annotations":{"io.kubernetes.cri.container-name":"db"}})");
  NodeSampler sampler = node.open();
  const auto found = found_by_path(node.sample(sampler));
  REQUIRE(found.size() == 2);
  CHECK(found.at("/ci/app").engine == Engine::containerd);
  CHECK(found.at("/ci/app").name == "app");
  CHECK(found.at("/k8s.io/" + kOtherId).engine == Engine::containerd);
  CHECK(found.at("/k8s.io/" + kOtherId).name == "db");
}

TEST_CASE("a source names the first container whose labels are unknown") {
  Node node;
  node.write_engine_files();
  node.make("/cg/system.slice/docker-" + kDockerId + ".scope");
  NodeSampler sampler = node.open();
  const auto source = [&] {
    node.sample(sampler);
    for (const Source& one : sampler.sources())
      if (one.name == "engine files") return one;
    return Source{};
  };
  CHECK(source().present);
  const std::string unknown = "/cg/system.slice/docker-" + kOtherId + ".scope";
  node.make(unknown);
  CHECK_FALSE(source().present);
  CHECK(source().detail.find("1 containers") != std::string::npos);
  CHECK(source().detail.find("/var/lib/docker") != std::string::npos);
  node.remove(unknown);
  CHECK(source().present);
}
