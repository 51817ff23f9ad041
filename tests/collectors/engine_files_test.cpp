#include "collectors/containers/engine_files.h"

#include <fcntl.h>
#include <sys/xattr.h>

#include <random>

#include "base/fd.h"
#include "tests/collectors/fake_tree.h"

using namespace cgphase;

namespace {

const std::string kId(64, 'a');

ContainerInfo container_of(Engine engine, const std::string& id = kId) {
  ContainerInfo container;
  container.engine = engine;
  container.engine_id = id;
  container.name = "short";
  return container;
}

ContainerInfo read(const FakeTree& fake, Engine engine, const std::string& id = kId) {
  ContainerInfo container = container_of(engine, id);
  EngineFiles(fake.root(), fake.root() + "/proc").describe(container, 0);
  return container;
}

}  // namespace

TEST_CASE("Docker's file has name, image and labels") {
  FakeTree fake;
  fake.write("/var/lib/docker/containers/" + kId + "/config.v2.json",
             R"({"Name":"/web","Config":{"Image":"nginx:1","Labels":{"cgphase.mode":"enforce"}}})");
  const ContainerInfo container = read(fake, Engine::docker);
  CHECK(container.name == "web");
  CHECK(container.image == "nginx:1");
  CHECK(container.labels.at("cgphase.mode") == "enforce");
}

TEST_CASE("Podman's files have name, image and annotations") {
  FakeTree fake;
  const std::string storage = "/var/lib/containers/storage/overlay-containers/";
  fake.write(storage + "containers.json",
             R"([{"id":"x","names":["other"]},{"id":")" + kId +
                 R"(","names":["db"],"metadata":"{\"image-name\":\"postgres:16\"}"}])");
  fake.write(storage + kId + "/userdata/config.json",
             R"({"annotations":{"io.container.manager":"libpod"}})");
  const ContainerInfo container = read(fake, Engine::podman);
  CHECK(container.name == "db");
  CHECK(container.image == "postgres:16");
  CHECK(container.labels.at("io.container.manager") == "libpod");
}

TEST_CASE("a Podman container with --rm has its name in the volatile list") {
  FakeTree fake;
  const std::string storage = "/var/lib/containers/storage/overlay-containers/";
  fake.write(storage + "containers.json", R"([{"id":"x","names":["other"]}])");
  fake.write(storage + "volatile-containers.json",
             R"([{"id":")" + kId + R"(","names":["once"],)"
                 R"("metadata":"{\"image-name\":\"batch:2\"}"}])");
  CHECK(read(fake, Engine::podman).name == "once");
  CHECK(read(fake, Engine::podman).image == "batch:2");
  fake.remove(storage + "containers.json");
  CHECK(read(fake, Engine::podman).name == "once");
}

TEST_CASE("containerd's file is found in any namespace") {
  FakeTree fake;
  const std::string tasks = "/run/containerd/io.containerd.runtime.v2.task/";
  fake.make(tasks + "a");
  fake.write(tasks + "k8s.io/" + kId + "/config.json",
             R"({"annotations":{"io.kubernetes.cri.container-name":"app",)"
             R"("io.kubernetes.cri.image-name":"app:2"}})");
  const ContainerInfo container = read(fake, Engine::containerd);
  CHECK(container.name == "app");
  CHECK(container.image == "app:2");
}

TEST_CASE("an Incus container differs from LXC's by its directory") {
  FakeTree fake;
  fake.make("/var/lib/incus/containers/one");
  fake.make("/var/lib/lxc/two");
  CHECK(read(fake, Engine::lxc, "one").engine == Engine::incus);
  CHECK(read(fake, Engine::lxc, "two").engine == Engine::lxc);
  CHECK(read(fake, Engine::lxc, "three").engine == Engine::lxc);
}

TEST_CASE("without files the name is unchanged and the image is empty") {
  FakeTree fake;
  for (const Engine engine : {Engine::docker, Engine::podman, Engine::containerd, Engine::crio}) {
    const ContainerInfo container = read(fake, engine);
    CHECK(container.name == "short");
    CHECK(container.image.empty());
    CHECK(container.labels.empty());
  }
}

TEST_CASE("malformed files, and other types, change nothing") {
  for (const char* text : {"", "{", "null", "[]", "3", R"({"Name":5,"Config":[1]})", "\xff\xfe",
                           R"({"Name":"/","Config":{"Image":{},"Labels":[]}})",
                           R"({"Config":{"Labels":{"a":1}}})", R"({"annotations":"x"})",
                           R"([{"id":5},7,null])", "{\"Name\":\"\xff\"}"}) {
    CAPTURE(text);
    ContainerInfo container = container_of(Engine::docker);
    apply_docker_config(text, container);
    apply_storage_list(text, container);
    apply_oci_config(text, container);
    CHECK(container.name == "short");
    CHECK(container.image.empty());
    CHECK(container.labels.empty());
  }
}

TEST_CASE("deeply nested JSON is harmless") {
  ContainerInfo container = container_of(Engine::docker);
  apply_docker_config(std::string(1'000'000, '['), container);
  CHECK(container.name == "short");
}

// rule: SEC-05
TEST_CASE("labels are taken up to the limit, and not one more") {
  const auto labels = [](std::size_t count) {
    std::string json = R"({"annotations":{)";
    for (std::size_t i = 0; i < count; ++i)
      json += (i ? ",\"" : "\"") + std::to_string(i) + "\":\"v\"";
    ContainerInfo container;
    apply_oci_config(json + "}}", container);
    return container.labels.size();
  };
  CHECK(labels(kMaxLabels) == kMaxLabels);
  CHECK(labels(kMaxLabels + 1) == kMaxLabels);
}

TEST_CASE("a label of maximum length is taken, a longer one is not") {
  const auto taken = [](std::size_t key, std::size_t value) {
    ContainerInfo container;
    apply_oci_config(R"({"annotations":{")" + std::string(key, 'k') + R"(":")" +
                         std::string(value, 'v') + R"("}})",
                     container);
    return container.labels.size() == 1;
  };
  CHECK(taken(kMaxLabelBytes, kMaxLabelBytes));
  CHECK_FALSE(taken(kMaxLabelBytes + 1, 1));
  CHECK_FALSE(taken(1, kMaxLabelBytes + 1));
  CHECK_FALSE(taken(0, 1));
}

TEST_CASE("a name of maximum length is taken, a longer one is not") {
  const auto name = [](std::size_t bytes) {
    ContainerInfo container = container_of(Engine::docker);
    apply_docker_config(R"({"Name":"/)" + std::string(bytes, 'n') + "\"}", container);
    return container.name;
  };
  CHECK(name(kMaxNameBytes).size() == kMaxNameBytes);
  CHECK(name(kMaxNameBytes + 1) == "short");
}

// rule: SEC-05
TEST_CASE("an engine file of maximum size is read, one byte more is not") {
  FakeTree fake;
  const std::string path = "/var/lib/docker/containers/" + kId + "/config.v2.json";
  const std::string json = R"({"Name":"/web"})";
  fake.write(path, json + std::string(kMaxEngineFileBytes - json.size(), ' '));
  CHECK(read(fake, Engine::docker).name == "web");
  fake.write(path, json + std::string(kMaxEngineFileBytes - json.size() + 1, ' '));
  CHECK(read(fake, Engine::docker).name == "short");
}

// rule: SEC-05
TEST_CASE("an id that would leave its directory is not looked up") {
  FakeTree fake;
  fake.write("/var/lib/docker/config.v2.json", R"({"Name":"/stolen"})");
  fake.write("/var/lib/docker/containers/x/y", "");
  for (const char* id : {"..", ".", "", "x/..", "../../docker"})
    CHECK(read(fake, Engine::docker, id).name == "short");
}

TEST_CASE("hostile names are kept unchanged") {
  ContainerInfo container = container_of(Engine::docker);
  apply_docker_config(R"({"Name":"/\u001b[31m<b>","Config":{"Image":"\u202e"}})", container);
  CHECK(container.name == "\x1b[31m<b>");
  CHECK(container.image == "\xe2\x80\xae");
}

TEST_CASE("attributes of a directory are name, image and labels") {
  FakeTree fake;
  fake.make("/c");
  const std::string path = fake.root() + "/c";
  if (::setxattr(path.c_str(), "user.cgphase.image", "train:1", 7, 0) != 0) {
    MESSAGE("this file system has no user attributes; the kernel tests read them on cgroup2");
    return;
  }
  ::setxattr(path.c_str(), "user.cgphase.name", "t", 1, 0);
  ::setxattr(path.c_str(), "user.cgphase.mode", "observe", 7, 0);
  ::setxattr(path.c_str(), "user.other", "x", 1, 0);
  const Result<Fd> directory = open_path(path, O_RDONLY | O_DIRECTORY);
  REQUIRE(directory.has_value());
  ContainerInfo container = container_of(Engine::cgroup);
  read_attributes(directory->get(), container);
  CHECK(container.image == "train:1");
  CHECK(container.name == "t");
  CHECK(container.labels == std::map<std::string, std::string>{{"cgphase.mode", "observe"}});
}

TEST_CASE("a directory without attributes changes nothing") {
  FakeTree fake;
  const Result<Fd> directory = open_path(fake.root(), O_RDONLY | O_DIRECTORY);
  REQUIRE(directory.has_value());
  ContainerInfo container = container_of(Engine::cgroup);
  read_attributes(directory->get(), container);
  CHECK(container.name == "short");
  CHECK(container.labels.empty());
}

// rule: SEC-05
TEST_CASE("arbitrary bytes in engine files are harmless") {
  constexpr unsigned kSeed = 77;
  CAPTURE(kSeed);
  std::mt19937 random(kSeed);
  const std::string seeds[] = {
      R"({"Name":"/web","Config":{"Image":"nginx","Labels":{"a":"b"}}})",
      R"([{"id":"a","names":["db"],"metadata":"{\"image-name\":\"pg\"}"}])",
      R"({"annotations":{"nerdctl/name":"x","io.kubernetes.cri.image-name":"y"}})"};
  for (int round = 0; round < 5000; ++round) {
    std::string text = seeds[random() % std::size(seeds)];
    for (auto changes = random() % 5; changes > 0; --changes)
      text[random() % text.size()] = static_cast<char>(random());
    ContainerInfo container = container_of(Engine::podman, "a");
    apply_docker_config(text, container);
    apply_storage_list(text, container);
    apply_oci_config(text, container);
    CHECK(container.name.size() <= kMaxNameBytes);
    CHECK(container.labels.size() <= kMaxLabels);
  }
}
