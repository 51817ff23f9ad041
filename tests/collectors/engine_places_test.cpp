// Files of engines elsewhere than at the usual place, and of users.
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "collectors/containers/engine_files.h"
#include "tests/collectors/bolt_bytes.h"
#include "tests/collectors/fake_tree.h"

using namespace cgphase;

namespace {

constexpr uid_t kUser = 1000;
const std::string kDescribedId(64, 'a');
const std::string kHome = "/home/ann";

ContainerInfo described(const FakeTree& fake, Engine engine, uid_t owner = 0,
                        const std::string& id = kDescribedId) {
  ContainerInfo container;
  container.engine = engine;
  container.engine_id = id;
  container.name = "short";
  EngineFiles(fake.root(), fake.root() + "/proc").describe(container, owner);
  return container;
}

std::string docker_file(const std::string& place) {
  return place + "/containers/" + kDescribedId + "/config.v2.json";
}
void write_docker(const FakeTree& fake, const std::string& place, const std::string& name) {
  fake.write(docker_file(place), R"({"Name":"/)" + name +
                                     R"(","Config":{"Labels":{"cgphase.mode":"observe"}}})");
}
void write_dockerd(const FakeTree& fake, const std::string& uid, const std::string& words) {
  fake.write("/proc/7/comm", "dockerd\n");
  fake.write("/proc/7/status", "Name:\tdockerd\nUid:\t" + uid + "\nNSpid:\t7\n");
  std::string line = words;
  for (char& byte : line)
    if (byte == ' ') byte = '\0';
  fake.write("/proc/7/cmdline", line + '\0');
}

std::string podman_config(const std::string& name) {
  return R"({"name":")" + name +
         R"(","rootfsImageName":"pg:16","labels":{"cgphase.mode":"observe"}})";
}

// A user with a home. False if this test cannot give files away.
bool make_user(const FakeTree& fake) {
  fake.write("/etc/passwd", "root:x:0:0::/root:/bin/sh\nann:x:1000:1000:Ann:/home/ann:/bin/sh\n");
  fake.make(kHome);
  return ::geteuid() == 0;
}
void give_away(const FakeTree& fake, const std::string& path) {
  REQUIRE(::chown((fake.root() + path).c_str(), kUser, kUser) == 0);
}

}  // namespace

TEST_CASE("Docker's data-root can be elsewhere") {
  struct Place {
    std::string data, file, text;
  };
  const Place places[] = {
      {"/var/lib/docker", "", ""},
      {"/var/snap/docker/common/var-lib-docker", "", ""},
      {"/var/lib/docker/165536.165536", "", ""},
      {"/srv/docker", "/etc/docker/daemon.json", R"({"data-root":"/srv/docker"})"},
      {"/srv/docker/1.1", "/etc/docker/daemon.json", R"({"data-root":"/srv/docker"})"},
      {"/old/graph", "/etc/docker/daemon.json", R"({"graph":"/old/graph"})"},
  };
  for (const Place& place : places) {
    CAPTURE(place.data);
    FakeTree fake;
    write_docker(fake, place.data, "web");
    if (!place.file.empty()) fake.write(place.file, place.text);
    const ContainerInfo container = described(fake, Engine::docker);
    CHECK(container.name == "web");
    CHECK(container.labels.at("cgphase.mode") == "observe");
    CHECK(container.labels_unknown.empty());
  }
}

TEST_CASE("Docker's data-root is found in the command line of root's dockerd") {
  for (const std::string words : {"dockerd --data-root /data/d", "dockerd -H x --data-root=/data/d",
                                  "dockerd -g /data/d", "dockerd --config-file /etc/d.json"}) {
    CAPTURE(words);
    FakeTree fake;
    fake.write("/etc/d.json", R"({"data-root":"/data/d"})");
    write_docker(fake, "/data/d", "web");
    CHECK(described(fake, Engine::docker).name == "short");
    write_dockerd(fake, "1000\t1000\t1000\t1000", words);
    CHECK(described(fake, Engine::docker).name == "short");
    write_dockerd(fake, "1000\t0\t0\t0", words);  // set-uid
    CHECK(described(fake, Engine::docker).name == "short");
    write_dockerd(fake, "0\t0\t0\t0\nNSpid:\t7\t1", words);  // in a container
    CHECK(described(fake, Engine::docker).name == "short");
    write_dockerd(fake, "0\t0\t0\t0", words);
    CHECK(described(fake, Engine::docker).name == "web");
  }
}

TEST_CASE("a data-root may be a link, also an absolute one, on the host") {
  FakeTree fake;
  write_docker(fake, "/data/docker", "web");
  fake.make("/var/lib");
  fake.link("/var/lib/docker", "/data/docker");
  CHECK(described(fake, Engine::docker).name == "web");
}

TEST_CASE("without its file a container's labels are unknown, with place and way out") {
  FakeTree fake;
  fake.make("/etc/containers");
  const std::string docker = described(fake, Engine::docker).labels_unknown;
  CHECK(docker.find("/var/lib/docker") != std::string::npos);
  CHECK(docker.find("daemon.json") != std::string::npos);
  const std::string podman = described(fake, Engine::podman).labels_unknown;
  CHECK(podman.find("/var/lib/containers/storage") != std::string::npos);
  CHECK_FALSE(described(fake, Engine::containerd).labels_unknown.empty());
  for (const Engine engine : {Engine::lxc, Engine::nspawn, Engine::service, Engine::cgroup})
    CHECK(described(fake, engine).labels_unknown.empty());
}

TEST_CASE("on a host without engines a container has no labels that could be unknown") {
  for (const char* trace : {"", "/var/lib/docker", "/run/containerd", "/etc/crio",
                            "/var/snap/docker/common/var-lib-docker"}) {
    CAPTURE(trace);
    FakeTree fake;
    if (*trace != 0) fake.make(trace);
    for (const Engine engine : {Engine::docker, Engine::podman, Engine::containerd})
      CHECK(described(fake, engine).labels_unknown.empty() == (*trace == 0));
  }
}

TEST_CASE("if nobody can see whether there is an engine, labels are unknown") {
  FakeTree fake;
  fake.link("/etc", "/etc");  // as if the kernel refused to open anything there
  CHECK_FALSE(described(fake, Engine::docker).labels_unknown.empty());
}

TEST_CASE("Podman's databases have name, image and labels") {
  for (const bool sqlite : {false, true})
    for (const bool moved : {false, true}) {
      CAPTURE(sqlite);
      FakeTree fake;
      const std::string storage = moved ? "/data/pods" : "/var/lib/containers/storage";
      if (moved)
        fake.write("/etc/containers/storage.conf", "[storage]\n graphroot = \"/data/pods\"\n");
      const std::map<std::string, std::string> all = {{kDescribedId, podman_config("db")}};
      if (sqlite) fake.write(storage + "/db.sql", podman_sqlite(all));
      else fake.write(storage + "/libpod/bolt_state.db", podman_bolt(all));
      const ContainerInfo container = described(fake, Engine::podman);
      CHECK(container.name == "db");
      CHECK(container.image == "pg:16");
      CHECK(container.labels.at("cgphase.mode") == "observe");
      CHECK(container.labels_unknown.empty());
    }
}

TEST_CASE("annotations of a container of Podman count beside its labels") {
  FakeTree fake;
  const std::string storage = "/var/lib/containers/storage";
  fake.write(storage + "/db.sql", podman_sqlite({{kDescribedId, podman_config("db")}}));
  fake.write(storage + "/overlay-containers/" + kDescribedId + "/userdata/config.json",
             R"({"annotations":{"cgphase.sleep":"off"}})");
  const ContainerInfo container = described(fake, Engine::podman);
  CHECK(container.labels.at("cgphase.mode") == "observe");
  CHECK(container.labels.at("cgphase.sleep") == "off");
}

TEST_CASE("without Podman's database a name is found for every storage driver, but no label") {
  for (const std::string driver : {"overlay", "vfs", "btrfs", "zfs"}) {
    CAPTURE(driver);
    FakeTree fake;
    fake.write("/var/lib/containers/storage/" + driver + "-containers/containers.json",
               R"([{"id":")" + kDescribedId + R"(","names":["db"],"metadata":"{}"}])");
    CHECK(described(fake, Engine::podman).name == "db");
    CHECK_FALSE(described(fake, Engine::podman).labels_unknown.empty());
  }
}

TEST_CASE("rootless engines are read in the home of the user who owns the cgroup") {
  FakeTree fake;
  if (!make_user(fake)) return;
  const std::string storage = kHome + "/.local/share/containers/storage/db.sql";
  fake.write(storage, podman_sqlite({{kDescribedId, podman_config("db")}}));
  give_away(fake, storage);
  const std::string docker = docker_file(kHome + "/.local/share/docker");
  write_docker(fake, kHome + "/.local/share/docker", "web");
  give_away(fake, docker);
  CHECK(described(fake, Engine::podman, kUser).name == "db");
  CHECK(described(fake, Engine::podman, kUser).labels.at("cgphase.mode") == "observe");
  CHECK(described(fake, Engine::docker, kUser).name == "web");
  // Neither root's container nor that of another user.
  CHECK(described(fake, Engine::podman).name == "short");
  CHECK(described(fake, Engine::podman, kUser + 1).name == "short");
}

// rule: SEC-05
TEST_CASE("a user's files are read only if they are the user's, and no links") {
  FakeTree fake;
  if (!make_user(fake)) return;
  const std::string share = kHome + "/.local/share", docker = docker_file(share + "/docker");
  write_docker(fake, share + "/docker", "roots");
  CHECK(described(fake, Engine::docker, kUser).name == "short");  // root's file
  give_away(fake, docker);
  CHECK(described(fake, Engine::docker, kUser).name == "roots");
  fake.make("/elsewhere");
  REQUIRE(::rename((fake.root() + share).c_str(), (fake.root() + "/elsewhere/share").c_str()) == 0);
  fake.link(share, "/elsewhere/share");
  CHECK(described(fake, Engine::docker, kUser).name == "short");
  fake.remove(share);
  fake.make(share + "/docker/containers/" + kDescribedId);
  REQUIRE(::mkfifo((fake.root() + docker).c_str(), 0600) == 0);
  give_away(fake, docker);
  CHECK(described(fake, Engine::docker, kUser).name == "short");  // and it does not wait
}

TEST_CASE("a container of containerd with the path of one of Docker is containerd's") {
  FakeTree fake;
  const std::string tasks = "/run/containerd/io.containerd.runtime.v2.task/";
  fake.write(tasks + "ci/" + kDescribedId + "/config.json",
             R"({"annotations":{"nerdctl/name":"train"}})");
  fake.write("/var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db",
             containerd_bolt("ci", kDescribedId, "lab/train:1", {{"cgphase.mode", "observe"}}));
  const ContainerInfo container = described(fake, Engine::docker);
  CHECK(container.engine == Engine::containerd);
  CHECK(container.name == "train");
  CHECK(container.image == "lab/train:1");
  CHECK(container.labels.at("cgphase.mode") == "observe");
  CHECK(container.labels_unknown.empty());
  // Docker's own containers are in containerd, too.
  FakeTree moby;
  moby.write(tasks + "moby/" + kDescribedId + "/config.json", R"({"annotations":{}})");
  CHECK(described(moby, Engine::docker).engine == Engine::docker);
  CHECK_FALSE(described(moby, Engine::docker).labels_unknown.empty());
}

TEST_CASE("labels of containerd are unknown if its database lacks the container") {
  FakeTree fake;
  const std::string file =
      "/run/containerd/io.containerd.runtime.v2.task/ci/" + kDescribedId + "/config.json";
  fake.write(file, R"({"annotations":{"nerdctl/name":"train"}})");
  CHECK(described(fake, Engine::containerd).labels_unknown.empty());
  fake.write("/var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db",
             containerd_bolt("ci", "other", "x", {}));
  CHECK(described(fake, Engine::containerd).name == "train");
  CHECK_FALSE(described(fake, Engine::containerd).labels_unknown.empty());
}

TEST_CASE("labels of CRI-O are in its annotations") {
  FakeTree fake;
  fake.write("/var/lib/containers/storage/overlay-containers/" + kDescribedId +
                 "/userdata/config.json",
             R"({"annotations":{"io.kubernetes.container.name":"app",)"
             R"("io.kubernetes.cri-o.Labels":"{\"cgphase.mode\":\"observe\"}"}})");
  const ContainerInfo container = described(fake, Engine::crio);
  CHECK(container.name == "app");
  CHECK(container.labels.at("cgphase.mode") == "observe");
  CHECK(container.labels_unknown.empty());
}

TEST_CASE("a container of Proxmox VE has its host name, a virtual machine its name") {
  FakeTree fake;
  fake.write("/etc/pve/nodes/pve/lxc/101.conf",
             "arch: amd64\nhostname: web\nmemory: 512\n\n[before-update]\nhostname: old\n");
  fake.link("/etc/pve/lxc", "nodes/pve/lxc");
  fake.write("/etc/pve/qemu-server/200.conf", "cores: 2\nname: windows\n[s]\nname: x\n");
  CHECK(described(fake, Engine::lxc, 0, "101").name == "web");
  CHECK(described(fake, Engine::qemu, 0, "200").name == "windows");
  fake.write("/var/lib/lxc/101/config", "lxc.arch = amd64\nlxc.uts.name = mail\n");
  CHECK(described(fake, Engine::lxc, 0, "101").name == "mail");
  CHECK(described(fake, Engine::lxc, 0, "102").name == "short");
}

TEST_CASE("LXD's containers are told from LXC's by their directory") {
  FakeTree fake;
  fake.make("/var/lib/lxd/containers/one");
  fake.make("/var/snap/lxd/common/lxd/containers/two");
  for (const char* name : {"one", "two"})
    CHECK(described(fake, Engine::lxc, 0, name).engine == Engine::incus);
}

TEST_CASE("a container that Sablier scales is left alone") {
  for (const auto& [value, owner] : {std::pair{"true", "managed by Sablier"}, {"false", ""}}) {
    FakeTree fake;
    fake.write(docker_file("/var/lib/docker"),
               R"({"Config":{"Labels":{"sablier.enable":")" + std::string(value) + R"("}}})");
    CHECK(described(fake, Engine::docker).hands_off == owner);
  }
}

// rule: SEC-05
TEST_CASE("a file of an engine is read up to its limit, and not one byte more") {
  const std::string head = R"({"Name":"/web","x":")", tail = R"("})";
  for (const std::size_t more : {std::size_t{0}, std::size_t{1}}) {
    FakeTree fake;
    const std::size_t fill = kMaxEngineFileBytes - head.size() - tail.size() + more;
    fake.write(docker_file("/var/lib/docker"), head + std::string(fill, 'x') + tail);
    CHECK((described(fake, Engine::docker).name == "web") == (more == 0));
  }
}
