// Which cgroups are containers if one is in another, and which names they have.
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collectors/node_sampler.h"
#include "tests/collectors/fake_node.h"

using namespace cgphase;

namespace {

std::map<CgroupPath, ContainerInfo> appeared_by_path(const NodeSample& tick) {
  std::map<CgroupPath, ContainerInfo> found;
  for (const ContainerInfo& one : tick.appeared) found[one.path] = one;
  return found;
}

void check_nameless(const ContainerInfo& info) {
  CHECK(info.name == info.engine_id.substr(0, 12));
  CHECK(info.image.empty());
  CHECK(info.labels.empty());
}

}  // namespace

TEST_CASE("a directory named by another container's id does not get its name, image and labels") {
  constexpr uid_t kSomebody = 1000;
  Node node;
  node.write_engine_files();
  const std::string docker = "/docker-" + kDockerId + ".scope";
  const std::string podman = "/libpod-" + kOtherId + ".scope";
  for (const std::string slice : {"/system.slice", "/user.slice"}) {
    node.make("/cg" + slice + docker);
    node.make("/cg" + slice + podman + "/container");
  }
  // The scope of crun's cgroup may belong to the container. The cgroup above the scope decides who
  // made it.
  const bool given =
      ::chown((node.root() + "/cg/user.slice").c_str(), kSomebody, kSomebody) == 0 &&
      ::chown((node.root() + "/cg/system.slice" + podman).c_str(), kSomebody, kSomebody) == 0;
  NodeSampler sampler = node.open();
  auto found = appeared_by_path(node.sample(sampler));
  REQUIRE(found.size() == 4);
  CHECK(found["/system.slice" + docker].name == "web");
  CHECK(found["/system.slice" + docker].image == "nginx:1");
  CHECK(found["/system.slice" + docker].labels.at("cgphase.mode") == "enforce");
  CHECK(found["/system.slice" + podman + "/container"].name == "db");
  if (!given) {
    MESSAGE("only root can give a directory away: the rest is not tested");
    return;
  }
  for (const std::string& path : {docker, podman + "/container"})
    check_nameless(found["/user.slice" + path]);
}

TEST_CASE("below a container no cgroup is a container by its name, at any depth") {
  Node node;
  const std::string docker = "/system.slice/docker-" + kDockerId + ".scope";
  const std::string podman = "/machine.slice/libpod-" + kOtherId + ".scope";
  const std::string outer[] = {docker, podman, "/lxc.payload.web", "/docker/" + kOtherId,
                               "/machine.slice/machine-box.scope"};
  for (const std::string& path : outer) node.write("/cg" + path + "/cgroup.procs", "1\n");
  NodeSampler sampler = node.open();
  const auto before = appeared_by_path(node.sample(sampler));
  REQUIRE(before.size() == std::size(outer));
  const std::string another(64, 'c');
  for (const std::string& path : outer)
    for (const std::string& inner : std::vector<std::string>{
          "/container", "/docker-" + another + ".scope", "/docker/" + another, "/" + another,
          "/libpod-" + another, "/libpod-" + another + ".scope/container", "/lxc.payload.x",
          "/system.slice/docker-" + another + ".scope", "/machine-x.scope",
          "/kubelet.slice/kubelet-kubepods.slice/cri-containerd-" + another + ".scope"})
      node.make("/cg" + path + inner);
  for (int tick = 0; tick < 10; ++tick) {
    CHECK(node.sample(sampler).appeared.empty());
    CHECK(node.tick.vanished.empty());
    CHECK(node.tick.containers.size() == std::size(outer));
  }
  NodeSampler later = node.open();  // and for a daemon that starts later
  const auto after = appeared_by_path(node.sample(later));
  REQUIRE(after.size() == std::size(outer));
  for (const auto& [path, info] : before) CHECK(after.at(path).id == info.id);
}

TEST_CASE("a cgroup that the administrator's pattern names is a container also below one") {
  Node node;
  const std::string outer = "/docker/" + kDockerId;
  node.make("/cg" + outer + "/jobs/a");
  NodeSampler sampler = node.open({"/docker/*/jobs/*"});
  const auto found = appeared_by_path(node.sample(sampler));
  CHECK(found.size() == 2);
  CHECK(found.contains(outer + "/jobs/a"));
}

TEST_CASE("an inner cgroup that a container in its scope made does not represent the scope") {
  Node node;
  const std::string scope = "/machine.slice/libpod-" + kDockerId + ".scope";
  node.write("/cg" + scope + "/cgroup.procs", "1\n");
  NodeSampler sampler = node.open();
  const CgroupId id = node.sample(sampler).appeared.at(0).id;
  node.make("/cg" + scope + "/container");
  CHECK(node.sample(sampler).vanished.empty());
  // It moved all its processes there, but the cgroup had processes of its own.
  node.write("/cg" + scope + "/cgroup.procs", "");
  node.remove("/cg" + scope + "/container");
  node.sample(sampler);
  node.make("/cg" + scope + "/container");
  for (int tick = 0; tick < 10; ++tick) CHECK(node.sample(sampler).vanished.empty());
  CHECK(node.tick.containers.at(0).id == id);
}

TEST_CASE("an inner cgroup without limits does not represent a scope with limits") {
  Node node;
  const std::string scope = "/machine.slice/libpod-" + kDockerId + ".scope";
  node.make("/cg" + scope + "/container");
  node.write("/cg" + scope + "/memory.max", "1073741824\n");
  const auto path = [&] {
    NodeSampler sampler = node.open();
    REQUIRE(node.sample(sampler).appeared.size() == 1);
    return node.tick.appeared[0].path;
  };
  CHECK(path() == scope);
  node.write("/cg" + scope + "/container/memory.max", "max\n");
  CHECK(path() == scope);
  node.write("/cg" + scope + "/container/cpu.max", "100000 100000\n");
  CHECK(path() == scope + "/container");
}

TEST_CASE("the owner of a container is the cgroup around it") {
  Node node;
  const std::string podman = "/machine.slice/libpod-" + kOtherId + ".scope";
  node.make("/cg/tenant.slice/docker-" + kDockerId + ".scope");
  node.make("/cg" + podman + "/container");
  NodeSampler sampler = node.open();
  const auto found = appeared_by_path(node.sample(sampler));
  CHECK(found.at("/tenant.slice/docker-" + kDockerId + ".scope").owner == "/tenant.slice");
  CHECK(found.at(podman + "/container").owner == "/machine.slice");
}

TEST_CASE("crun's inner cgroup represents its scope") {
  Node node;
  const std::string scope = "/machine.slice/libpod-" + kDockerId + ".scope";
  node.make("/cg" + scope + "/container");
  NodeSampler sampler = node.open();
  REQUIRE(node.sample(sampler).appeared.size() == 1);
  CHECK(node.tick.appeared[0].path == scope + "/container");
  CHECK(node.tick.appeared[0].engine == Engine::podman);
  CHECK_FALSE(node.tick.appeared[0].systemd_unit);
  CHECK(node.tick.vanished.empty());
}

TEST_CASE("where systemd does not run, a scope is no unit of it") {
  Node node;
  std::filesystem::remove(node.root() + "/run/systemd/system");
  node.make("/cg/system.slice/docker-" + kDockerId + ".scope");
  NodeSampler sampler = node.open();
  CHECK_FALSE(node.sample(sampler).appeared.at(0).systemd_unit);
}

TEST_CASE("crun's inner cgroup that appears a tick later replaces the reported scope") {
  Node node;
  const std::string scope = "/machine.slice/libpod-" + kDockerId + ".scope";
  node.make("/cg" + scope);
  NodeSampler sampler = node.open();
  REQUIRE(node.sample(sampler).appeared.size() == 1);
  const ContainerInfo outer = node.tick.appeared[0];
  CHECK(outer.systemd_unit);
  node.make("/cg" + scope + "/container");
  CHECK(node.sample(sampler).vanished == std::vector{outer.id});
  CHECK(node.tick.appeared.at(0).path == scope + "/container");
  CHECK(node.tick.containers.size() == 1);
}

TEST_CASE("a pod that looks like a Docker container is none once a Podman container is in it") {
  Node node;
  const std::string pod = "/batch/" + kDockerId;
  node.make("/cg" + pod);
  NodeSampler sampler = node.open();
  const CgroupId id = node.sample(sampler).appeared.at(0).id;
  node.make("/cg" + pod + "/libpod-" + kOtherId);
  CHECK(node.sample(sampler).vanished == std::vector{id});
  CHECK(node.tick.appeared.at(0).path == pod + "/libpod-" + kOtherId);
  CHECK(node.tick.containers.size() == 1);
}

TEST_CASE("a scope or pod is a container again when its inner cgroup is gone") {
  Node node;
  const std::string scope = "/machine.slice/libpod-" + kDockerId + ".scope";
  for (const auto& [outer, inner] : {std::pair{scope, scope + "/container"},
                                     std::pair{"/batch/" + kOtherId,
                                               "/batch/" + kOtherId + "/libpod-" + kDockerId}}) {
    CAPTURE(outer);
    node.make("/cg" + inner);
    NodeSampler sampler = node.open();
    const CgroupId id = node.sample(sampler).appeared.at(0).id;
    CHECK(node.tick.appeared.at(0).path == inner);
    for (int round = 0; round < 2; ++round) {
      node.remove("/cg" + inner);
      node.sample(sampler);
      CHECK(node.tick.vanished.size() == 1);
      CHECK(node.tick.appeared.at(0).path == outer);
      CHECK(node.tick.appeared.at(0).id != id);
      CHECK(node.tick.containers.size() == 1);
      node.make("/cg" + inner);
      CHECK(node.sample(sampler).appeared.at(0).path == inner);
      CHECK(node.tick.containers.size() == 1);
    }
    node.remove("/cg" + outer);
    CHECK(node.sample(sampler).appeared.empty());
    CHECK(node.sample(sampler).appeared.empty());
    CHECK(node.tick.containers.empty());
  }
}

TEST_CASE("a pod is no container while one of its containers exists") {
  Node node;
  const std::string pod = "/batch/" + kOtherId;
  const std::string first = pod + "/libpod-" + kDockerId;
  const std::string second = pod + "/libpod-" + std::string(64, 'c');
  for (const std::string& path : {first, second}) node.make("/cg" + path);
  NodeSampler sampler = node.open();
  REQUIRE(node.sample(sampler).containers.size() == 2);
  node.remove("/cg" + first);
  CHECK(node.sample(sampler).appeared.empty());
  CHECK(node.tick.containers.size() == 1);
  node.remove("/cg" + second);
  CHECK(node.sample(sampler).appeared.at(0).path == pod);
}

TEST_CASE("an empty scope is a container again only after the grace period") {
  Node node;
  const std::string scope = "/machine.slice/libpod-" + kDockerId + ".scope";
  node.make("/cg" + scope + "/container");
  NodeSampler sampler = node.open();
  node.sample(sampler);
  node.write("/cg" + scope + "/cgroup.events", "populated 0\n");
  node.remove("/cg" + scope + "/container");
  for (int second = 0; second < 5; ++second) CHECK(node.sample(sampler).appeared.empty());
  CHECK(node.sample(sampler).appeared.size() == 1);
}

TEST_CASE("a Docker container with an apparent Podman container in it stays one, alone") {
  for (const std::string parent : {"/docker/", "/batch/"}) {
    CAPTURE(parent);
    Node node;
    // Outside Docker's usual place only its file distinguishes it from a pod.
    if (parent == "/batch/") node.write_engine_files();
    const std::string outer = parent + kDockerId, inner = outer + "/libpod-" + kOtherId;
    node.make("/cg" + outer);
    NodeSampler sampler = node.open();
    REQUIRE(node.sample(sampler).containers.size() == 1);
    node.make("/cg" + inner);
    CHECK(node.sample(sampler).vanished.empty());
    CHECK(node.tick.appeared.empty());
    CHECK(node.tick.containers.size() == 1);
  }
}

TEST_CASE("a container in a pod or a Slurm job has name, image and labels by its id") {
  Node node;
  node.write_engine_files();
  const std::string another(64, 'c'), podman = "/libpod-" + kOtherId;
  const std::string docker = "/docker-" + kDockerId + ".scope";
  const std::string own[] = {"/batch/" + another + podman, "/libpod_parent/" + another + podman,
                             "/system.slice/slurmstepd.scope/job_1" + docker,
                             "/machine.slice" + podman + ".scope/container"};
  for (const std::string& path : own) node.make("/cg" + path);
  NodeSampler sampler = node.open();
  auto found = appeared_by_path(node.sample(sampler));
  for (const std::string& path : own) {
    CAPTURE(path);
    REQUIRE(found.contains(path));
    CHECK(found[path].name == (found[path].engine == Engine::docker ? "web" : "db"));
  }
}
