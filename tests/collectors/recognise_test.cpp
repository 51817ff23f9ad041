#include "collectors/containers/recognise.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace cgphase;

namespace {

const std::string kHexId = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string kShort = "0123456789ab";

std::optional<Recognised> recognise(const std::string& path,
                                    const std::vector<std::string>& include = {}) {
  return recognise_path(path, include);
}

struct Row {
  std::string path;
  Engine engine;
  std::string engine_id, name;
};

}  // namespace

TEST_CASE("each engine's path is recognised") {
  const Row rows[] = {
      {"/system.slice/docker-" + kHexId + ".scope", Engine::docker, kHexId, kShort},
      {"/docker/" + kHexId, Engine::docker, kHexId, kShort},
      {"/batch/" + kHexId, Engine::docker, kHexId, kShort},  // --cgroup-parent
      {"/machine.slice/libpod-" + kHexId + ".scope", Engine::podman, kHexId, kShort},
      {"/libpod_parent/libpod-" + kHexId, Engine::podman, kHexId, kShort},
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kHexId + ".scope",
       Engine::podman, kHexId, kShort},
      {"/system.slice/web.service/libpod-payload-" + kHexId, Engine::podman, kHexId, kShort},
      {"/default/redis", Engine::containerd, "redis", "redis"},
      {"/default/" + kHexId, Engine::containerd, kHexId, kShort},
      {"/system.slice/nerdctl-" + kHexId + ".scope", Engine::containerd, kHexId, kShort},
      {"/system.slice/custom-" + kHexId + ".scope", Engine::containerd, kHexId, kShort},
      {"/lxc.payload.web", Engine::lxc, "web", "web"},
      {"/lxc/101", Engine::lxc, "101", "101"},
      {"/lxc.payload.gpu-monitor", Engine::lxc, "gpu-monitor", "gpu-monitor"},
      {"/machine.slice/machine-my\\x2dbox.scope", Engine::nspawn, "my\\x2dbox", "my-box"},
      {"/machine.slice/systemd-nspawn@box.service", Engine::nspawn, "box", "box"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.path);
    const auto who = recognise(row.path);
    REQUIRE(who.has_value());
    CHECK(who->engine == row.engine);
    CHECK(who->engine_id == row.engine_id);
    CHECK(who->name == row.name);
    CHECK(who->hands_off.empty());
    CHECK_FALSE(who->inside_scope);
  }
}

TEST_CASE("crun's container cgroup represents its scope") {
  const auto who = recognise("/machine.slice/libpod-" + kHexId + ".scope/container");
  REQUIRE(who.has_value());
  CHECK(who->engine == Engine::podman);
  CHECK(who->engine_id == kHexId);
  CHECK(who->inside_scope);
  CHECK_FALSE(recognise("/system.slice/container").has_value());
  CHECK_FALSE(recognise("/system.slice/docker-" + kHexId + ".scope/container").has_value());
}

TEST_CASE("a Podman pod is no container, but the cgroups in it are") {
  const std::string pod(64, 'b');
  CHECK_FALSE(recognise("/libpod_parent/" + pod).has_value());
  CHECK_FALSE(recognise("/user.slice/libpod_parent/" + pod).has_value());
  // With its own --cgroup-parent, only the container's path is conclusive, not the pod's.
  CHECK(recognise("/batch/" + pod)->engine == Engine::docker);
  for (const std::string parent : {"/libpod_parent/", "/batch/"}) {
    const auto who = recognise(parent + pod + "/libpod-" + kHexId);
    REQUIRE(who.has_value());
    CHECK(who->engine == Engine::podman);
    CHECK(who->engine_id == kHexId);
    CHECK(who->in_pod);
    CHECK_FALSE(who->inside_scope);
  }
  CHECK_FALSE(recognise("/libpod_parent/libpod-" + kHexId)->in_pod);
  CHECK_FALSE(recognise("/docker/" + pod + "/libpod-" + kHexId)->in_pod);  // Docker's own place
}

TEST_CASE("a cgroup is in a container if it or one above it is one, except a Slurm job") {
  const std::string scope = "/system.slice/docker-" + kHexId + ".scope";
  for (const std::string& path : {scope, scope + "/a/b", "/lxc.payload.web/system.slice" + scope}) {
    CAPTURE(path);
    CHECK(is_in_container(path));
  }
  for (const std::string path : {"", "/", "/docker", "/system.slice/web.service/a",
                                 "/system.slice/slurmstepd.scope/job_1/step_0"}) {
    CAPTURE(path);
    CHECK_FALSE(is_in_container(path));
  }
}

// rule: S-09
TEST_CASE("cgroups of the kubelet are recognised and left alone") {
  const std::string pods = "/kubepods.slice/kubepods-burstable.slice/kubepods-pod1.slice";
  const std::string node = "/system.slice/docker-" + kHexId + ".scope";
  const Row rows[] = {
      {pods + "/cri-containerd-" + kHexId + ".scope", Engine::containerd, kHexId, ""},
      {pods + "/crio-" + kHexId + ".scope", Engine::crio, kHexId, ""},
      {pods + "/docker-" + kHexId + ".scope", Engine::docker, kHexId, ""},
      {"/kubepods/burstable/pod1/" + kHexId, Engine::kubernetes, kHexId, ""},
      // An own cgroup root, as on a node that is itself a container.
      {node +
           "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
           "kubelet-kubepods-besteffort-pod1.slice/cri-containerd-" +
           kHexId + ".scope",
       Engine::containerd, kHexId, ""},
      {"/kubelet.slice/kubelet-kubepods.slice/crio-" + kHexId + ".scope", Engine::crio, kHexId, ""},
      {"/a.slice/a-b.slice/a-b-kubepods.slice/docker-" + kHexId + ".scope", Engine::docker, kHexId,
       ""},
      {"/kubelet/kubepods/besteffort/pod1/" + kHexId, Engine::kubernetes, kHexId, ""},
      {"/kubelet.slice/kubelet-kubepods.slice/pod1/" + kHexId, Engine::kubernetes, kHexId, ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.path);
    const auto who = recognise(row.path);
    REQUIRE(who.has_value());
    CHECK(who->engine == row.engine);
    CHECK(who->hands_off == "managed by kubelet");
  }
}

TEST_CASE("a name that only contains the kubelet's word is not the kubelet's") {
  for (const std::string& path : std::vector<std::string>{
           "/lxc.payload.my-kubepods", "/lxc.payload.xkubepods",
           "/machine.slice/xkubepods.slice/libpod-" + kHexId + ".scope"}) {
    CAPTURE(path);
    REQUIRE(recognise(path).has_value());
    CHECK(recognise(path)->hands_off.empty());
  }
}

// rule: S-09
TEST_CASE("a Slurm job is recognised and left alone") {
  const auto who = recognise("/system.slice/node1_slurmstepd.scope/job_42");
  REQUIRE(who.has_value());
  CHECK(who->engine == Engine::slurm);
  CHECK(who->engine_id == "job_42");
  CHECK(who->hands_off == "managed by Slurm");
  CHECK_FALSE(recognise("/system.slice/slurmstepd.scope/job_42/step_0").has_value());
}

// rule: S-09
TEST_CASE("what is in a tree of Nomad or Slurm is left alone") {
  const std::string task = "0b5c7a1e-1111-2222-3333-444455556666.web";
  for (const std::string& path :
       {"/nomad.slice/share.slice/" + task + ".scope", "/nomad/reserve/" + task}) {
    CAPTURE(path);
    const auto who = recognise(path);
    REQUIRE(who.has_value());
    CHECK(who->engine == Engine::nomad);
    CHECK(who->engine_id == task);
    CHECK(who->name == "web");
    CHECK(who->hands_off == "managed by Nomad");
  }
  CHECK(recognise("/nomad.slice/docker-" + kHexId + ".scope")->hands_off == "managed by Nomad");
  CHECK(recognise("/system.slice/slurmstepd.scope/job_1/docker-" + kHexId + ".scope")->hands_off ==
        "managed by Slurm");
  CHECK_FALSE(recognise("/system.slice/" + task + ".scope").has_value());
}

TEST_CASE("other cgroups are not recognised") {
  for (const std::string& path : std::vector<std::string>{
           "/", "", "/system.slice", "/init.scope", "/docker", "/machine.slice",
           "/machine.slice/libpod-conmon-" + kHexId + ".scope", "/lxc.monitor.web", "/lxc.payload.",
           "/docker/buildkit", "/system.slice/cron.service", "/libpod_parent",
           "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", "/system.slice/docker-abc.scope",
           "/docker/" + kHexId.substr(1), "/docker/" + kHexId + "0", "/docker/G" + kHexId.substr(1),
           "/user.slice/session-1.scope", "/lxc.payload.web/system.slice/cron.service",
           "/default/.hidden", "/default/a b", "/-" + kHexId + ".scope"}) {
    CAPTURE(path);
    CHECK_FALSE(recognise(path).has_value());
  }
}

TEST_CASE("a service is a container only if a pattern names it") {
  CHECK_FALSE(recognise("/system.slice/web.service").has_value());
  const auto who = recognise("/system.slice/web.service", {"/system.slice/w*.service"});
  REQUIRE(who.has_value());
  CHECK(who->engine == Engine::service);
  CHECK(who->name == "web.service");
  CHECK(who->hands_off.empty());
}

TEST_CASE("a pattern without a slash is matched against the last element") {
  CHECK(recognise("/a/b/web.service", {"web.service"}).has_value());
  CHECK_FALSE(recognise("/a/web.service/b", {"web.service"}).has_value());
}

TEST_CASE("a star does not cross a slash") {
  CHECK(recognise("/jobs/a", {"/jobs/*"})->engine == Engine::cgroup);
  CHECK_FALSE(recognise("/jobs/a/b", {"/jobs/*"}).has_value());
}

TEST_CASE("a backslash in a pattern is literal") {
  CHECK(recognise("/s/a\\x2db.service", {"/s/a\\x2db.service"}).has_value());
}

// rule: S-09
TEST_CASE("services that the system needs are recognised and left alone") {
  for (const char* unit : {
           "ssh.service", "sshd.service", "sshd@1.service", "docker.service",
           "snap.docker.dockerd.service", "buildkit.service", "containerd.service",
           "podman.service", "crio.service", "cri-docker.service", "kubelet.service",
           "k3s.service", "k3s-agent.service", "rke2-server.service", "rke2-agent.service",
           "snap.microk8s.daemon-kubelite.service", "incus.service", "incus-lxcfs.service",
           "lxc.service", "lxcfs.service", "lxd.service", "snap.lxd.daemon.service",
           "libvirtd.service", "virtqemud.service", "virtlxcd.service", "cgphased.service",
           "systemd-journald.service", "dbus.service", "user@1000.service"}) {
    CAPTURE(unit);
    const auto who = recognise(std::string("/system.slice/") + unit, {"*.service"});
    REQUIRE(who.has_value());
    CHECK_FALSE(who->hands_off.empty());
  }
  CHECK_FALSE(recognise("/cgphase.slice/own", {"/cgphase.slice/*"})->hands_off.empty());
  const std::string user = "/user.slice/user-1000.slice/user@1000.service/app.slice/";
  CHECK(recognise(user + "web.service", {"*.service"})->hands_off.empty());
}

TEST_CASE("slices, init and monitors are no containers for any pattern") {
  for (const char* path : {"/system.slice", "/init.scope", "/x-monitor.service", "/lxc.monitor.x"})
    CHECK_FALSE(recognise(path, {"*"}).has_value());
}

TEST_CASE("a last element that ends in scope or service is a systemd unit") {
  CHECK(is_systemd_unit("/system.slice/docker-1.scope"));
  CHECK(is_systemd_unit("/system.slice/web.service"));
  CHECK_FALSE(is_systemd_unit("/system.slice/web.service/inner"));
  CHECK_FALSE(is_systemd_unit("/docker/1"));
}
