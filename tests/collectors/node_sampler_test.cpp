#include "collectors/node_sampler.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <thread>

#include "tests/collectors/allocation_count.h"
#include "tests/collectors/fake_node.h"
#include "tests/collectors/fill_inotify.h"
#include "tests/emulation.h"

using namespace cgphase;

namespace {

Source source_of(const NodeSampler& sampler, std::string_view name) {
  for (const Source& source : sampler.sources())
    if (source.name == name) return source;
  FAIL("no source " << name);
  return {};
}

// Affects this thread permanently, as if another program of this user had all watches.
bool refuse_watches_of_writes() {
  constexpr std::uint32_t kMask = IN_MODIFY | IN_DONT_FOLLOW;
  constexpr auto field = [](std::size_t offset) {
    return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
  };
  sock_filter filter[] = {
      field(offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_inotify_add_watch, 0, 3),
      field(offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kMask, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{std::size(filter), filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

TEST_CASE("a container is found, named once and read at every tick") {
  Node node;
  node.write("/cg/docker/" + kDockerId + "/cpu.stat", "usage_usec 1000\n");
  NodeSampler sampler = node.open();
  REQUIRE(node.sample(sampler).appeared.size() == 1);
  CHECK(node.tick.appeared[0].path == "/docker/" + kDockerId);
  CHECK(node.tick.appeared[0].engine == Engine::docker);
  REQUIRE(node.tick.containers.size() == 1);
  CHECK(node.tick.containers[0].id == node.tick.appeared[0].id);
  CHECK(node.tick.containers[0].cpu.usage_usec == 1000);
  node.write("/cg/docker/" + kDockerId + "/cpu.stat", "usage_usec 3000\n");
  CHECK(node.sample(sampler).appeared.empty());
  CHECK(node.tick.containers[0].cpu.usage_usec == 3000);
}

TEST_CASE("the host's capacity comes from the proc root") {
  Node node;
  NodeSampler sampler = node.open();
  CHECK(node.sample(sampler).host.cpu_cores == 2);
  CHECK(node.tick.host.memory.value == 2048 * 1024);
}

TEST_CASE("the time of a tick is that of the clock") {
  Node node;
  NodeSampler sampler = node.open();
  node.sample(sampler);
  CHECK(node.tick.time == node.clock.monotonic_now());
  CHECK(node.tick.wall_time == node.clock.wall_now());
}

TEST_CASE("a new container is seen by the next tick") {
  Node node;
  NodeSampler sampler = node.open({"/jobs/*"});
  CHECK(node.sample(sampler).containers.empty());
  node.make("/cg/jobs/train");
  REQUIRE(node.sample(sampler).appeared.size() == 1);
  CHECK(node.tick.appeared[0].path == "/jobs/train");
  CHECK(node.tick.appeared[0].engine == Engine::cgroup);
}

TEST_CASE("a removed container is reported once as vanished") {
  Node node;
  node.make("/cg/docker/" + kDockerId);
  NodeSampler sampler = node.open();
  const CgroupId id = node.sample(sampler).appeared.at(0).id;
  node.remove("/cg/docker/" + kDockerId);
  CHECK(node.sample(sampler).vanished == std::vector{id});
  CHECK(node.tick.containers.empty());
  CHECK(node.sample(sampler).vanished.empty());
}

TEST_CASE("another directory at the same path is another container") {
  Node node;
  node.make("/cg/docker/" + kDockerId);
  NodeSampler sampler = node.open();
  const CgroupId first = node.sample(sampler).appeared.at(0).id;
  node.remove("/cg/docker/" + kDockerId);
  node.make("/cg/docker/" + kDockerId);
  CHECK(node.sample(sampler).vanished == std::vector{first});
  REQUIRE(node.tick.appeared.size() == 1);
  CHECK(node.tick.appeared[0].id != first);
  CHECK(node.tick.containers.at(0).id == node.tick.appeared[0].id);
}

TEST_CASE("a container that comes and goes between two ticks is never reported") {
  Node node;
  NodeSampler sampler = node.open();
  node.sample(sampler);
  node.make("/cg/docker/" + kDockerId);
  node.remove("/cg/docker/" + kDockerId);
  CHECK(node.sample(sampler).appeared.empty());
  CHECK(node.tick.vanished.empty());
}

TEST_CASE("containers are ordered by identity") {
  Node node;
  for (int i = 0; i < 20; ++i) node.make("/cg/jobs/" + std::to_string(i * 7 % 20));
  NodeSampler sampler = node.open({"/jobs/*"});
  REQUIRE(node.sample(sampler).containers.size() == 20);
  CHECK(std::ranges::is_sorted(node.tick.containers, {}, &Sample::id));
}

TEST_CASE("hostile names are kept unchanged") {
  Node node;
  const std::string name = "\x1b[31m<b>\"'\xff\xfe end";
  node.make("/cg/jobs/" + name);
  NodeSampler sampler = node.open({"/jobs/*"});
  REQUIRE(node.sample(sampler).appeared.size() == 1);
  CHECK(node.tick.appeared[0].path == "/jobs/" + name);
  CHECK(node.tick.appeared[0].name == name);
}

TEST_CASE("a symbolic link is not a cgroup") {
  Node node;
  node.make("/elsewhere/docker/" + kDockerId);
  std::filesystem::create_directory_symlink(node.root() + "/elsewhere", node.root() + "/cg/link");
  NodeSampler sampler = node.open();
  CHECK(node.sample(sampler).containers.empty());
}

TEST_CASE("a tracked container's directory can be duplicated, an unknown one is gone") {
  Node node;
  node.make("/cg/docker/" + kDockerId);
  NodeSampler sampler = node.open();
  const CgroupId id = node.sample(sampler).appeared.at(0).id;
  const Result<Fd> directory = sampler.duplicate_directory(id);
  REQUIRE(directory.has_value());
  struct stat status{};
  REQUIRE(::fstat(directory->get(), &status) == 0);
  CHECK(status.st_ino == id.inode);
  CHECK(sampler.duplicate_directory({1, 2}).error().kind == ErrorKind::gone);
}

TEST_CASE("a root that does not exist is not found") {
  CHECK(NodeSampler::open({.cgroup_root = "/nonexistent/cgroup"}).error().kind ==
        ErrorKind::not_found);
}

TEST_CASE("a host without cgroup v2 has no container, and its sources report that") {
  auto sampler = NodeSampler::open({.cgroup_root = ""});
  REQUIRE(sampler.has_value());
  const ManualClock clock;
  NodeSample tick;
  sampler->sample(clock, tick);
  CHECK(tick.containers.empty());
  CHECK(tick.host.cpu_cores > 0);
  for (const Source& source : sampler->sources()) {
    if (source.name == "cgroup v2")
      CHECK(source.detail == "no cgroup v2 is mounted, so no container can be sampled");
    if (source.name == "inotify" || source.name == "all cgroups") CHECK(source.present);
    if (source.name == "cpu controller") CHECK_FALSE(source.present);
  }
}

TEST_CASE("each source has a sentence about what a plain directory lacks") {
  Node node;
  node.write("/cg/cgroup.controllers", "cpu memory\n");
  node.write("/cg/cgroup.subtree_control", "memory\n");
  NodeSampler sampler = node.open();
  const auto source = [sources = sampler.sources()](std::string_view name) {
    const auto at = std::ranges::find(sources, name, &Source::name);
    REQUIRE(at != sources.end());
    CHECK(at->present == at->detail.empty());
    return *at;
  };
  CHECK_FALSE(source("cgroup v2").present);
  CHECK(source("memory controller").present);
  CHECK(source("cpu controller").detail.find("subtree_control") != std::string::npos);
  CHECK(source("io controller").detail.find("cgroup.controllers") != std::string::npos);
  CHECK_FALSE(source("PSI").present);
  CHECK_FALSE(source("swap").present);
  CHECK(source("inotify").present);
  CHECK(source("all cgroups").present);
  CHECK(source("descriptors").present);
}

TEST_CASE("a steady tick allocates nothing for any number of containers") {
  Node node;
  for (int i = 0; i < 40; ++i) {
    const std::string path = "/cg/jobs/" + std::to_string(i);
    node.write(path + "/cpu.stat", "usage_usec 5\n");
    node.write(path + "/memory.stat", "anon 5\n");
    node.write(path + "/cpu.max", "max 100000\n");
    node.write(path + "/memory.low", "0\n");
    node.write(path + "/cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n");
  }
  node.write("/cg/jobs/cpu.stat", "usage_usec 200\n");
  NodeSampler sampler = node.open({"/jobs/*"});
  REQUIRE(node.sample(sampler).containers.size() == 40);
  node.sample(sampler);
  const long before = allocation_count();
  for (int i = 0; i < 30; ++i) node.sample(sampler);
  CHECK(allocation_count() == before);
  CHECK(node.tick.containers.size() == 40);
}

TEST_CASE("a reset is reported with the limits of its unit, without an allocation") {
  Node node;
  const std::string unit = "/cg/system.slice/docker-" + std::string(64, 'a') + ".scope";
  const std::string no_unit = "/cg/docker/" + std::string(64, 'b');
  for (const std::string& path : {unit, no_unit}) {
    node.write(path + "/memory.max", "4096\n");
    node.write(path + "/memory.low", "0\n");
  }
  NodeSampler sampler = node.open();
  REQUIRE(node.sample(sampler).containers.size() == 2);
  node.sample(sampler);
  for (const Sample& sample : node.tick.containers) CHECK_FALSE(sample.limits_reset.has_value());
  node.write(unit + "/memory.low", "0\n");
  node.write(no_unit + "/memory.low", "0\n");
  const long before = allocation_count();
  node.sample(sampler);
  CHECK(allocation_count() == before);
  int reported = 0;
  for (const Sample& sample : node.tick.containers)
    if (sample.limits_reset) {
      CHECK(sample.limits_reset == node.tick.time);
      ++reported;
    }
  CHECK(reported == 1);
}

TEST_CASE("an inotify overflow is reported in the status, and is no reset") {
  Node node;
  std::vector<std::string> units;
  for (const char id : {'a', 'b', 'c'}) {
    units.push_back("/cg/system.slice/docker-" + std::string(64, id) + ".scope");
    node.write(units.back() + "/memory.low", "0\n");
  }
  NodeSampler sampler = node.open();
  node.sample(sampler);
  CHECK(source_of(sampler, "inotify").detail.empty());
  fill_inotify(node.root() + units[0] + "/memory.low", node.root() + units[1] + "/memory.low");
  node.write(units[2] + "/memory.low", "0\n");
  node.sample(sampler);
  CHECK(std::ranges::count_if(node.tick.containers, [](const Sample& sample) {
    return sample.limits_reset.has_value();
  }) == 2);
  CHECK(source_of(sampler, "inotify").present);
  CHECK(source_of(sampler, "inotify").detail ==
        "overflows: 1; limits that systemd reset then looked like somebody else's change: raise "
        "fs.inotify.max_queued_events");
}

TEST_CASE("exhausted watches are reported, retried once a minute, and then report resets") {
  Node node;
  const std::string unit = "/cg/system.slice/docker-" + std::string(64, 'a') + ".scope";
  node.write(unit + "/memory.low", "0\n");
  std::optional<NodeSampler> sampler;
  bool refused = false;
  std::thread([&] {
    refused = refuse_watches_of_writes();
    sampler.emplace(node.open());
    node.sample(*sampler);
  }).join();
  if (test::kMayBeEmulated && !refused) {
    MESSAGE("skipped: nothing filters system calls here, as in qemu-user");
    return;
  }
  REQUIRE(refused);
  CHECK_FALSE(source_of(*sampler, "inotify").present);
  CHECK(source_of(*sampler, "inotify").detail.starts_with("limits that systemd resets look like"));
  for (int second = 1; second < 60; ++second) node.sample(*sampler);
  CHECK_FALSE(source_of(*sampler, "inotify").present);
  node.sample(*sampler);
  CHECK(source_of(*sampler, "inotify").present);
  node.write(unit + "/memory.low", "0\n");
  node.sample(*sampler);
  CHECK(node.tick.containers[0].limits_reset == node.tick.time);
}

TEST_CASE("limits of an observed container are read in the tick after a write") {
  Node node;
  const std::string path = "/cg/docker/" + kDockerId;
  node.write(path + "/cpu.stat", "usage_usec 1\n");
  node.write(path + "/memory.max", "4096\n");
  node.write(path + "/memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n");
  NodeSampler sampler = node.open();
  const CgroupId id = node.sample(sampler).appeared.at(0).id;
  sampler.set_detail(id, false);
  sampler.set_detail({1, 2}, false);  // no such container
  node.sample(sampler);
  node.write(path + "/memory.max", "8192\n");
  node.write(path + "/memory.events", "low 0\nhigh 0\nmax 1\noom 0\noom_kill 0\n");
  const long before = allocation_count();
  node.sample(sampler);
  CHECK(allocation_count() == before);
  CHECK(node.tick.containers.at(0).limits.memory_max == MemoryLimit{Bytes{8192}});
  CHECK(node.tick.containers.at(0).memory_events.max == 1);
}

TEST_CASE("unwritten files of an observed container keep their values until set_detail") {
  Node node;
  const std::string path = "/cg/docker/" + kDockerId;
  node.write(path + "/cpu.stat", "usage_usec 1\n");
  node.write(path + "/memory.max", "4096\n");
  std::filesystem::create_hard_link(node.root() + path + "/memory.max", node.root() + "/link");
  NodeSampler sampler = node.open();
  const CgroupId id = node.sample(sampler).appeared.at(0).id;
  sampler.set_detail(id, false);
  node.sample(sampler);
  node.write("/link", "8192\n");  // reported for the other directory
  node.sample(sampler);
  CHECK(node.tick.containers.at(0).limits.memory_max == MemoryLimit{Bytes{4096}});
  sampler.set_detail(id, true);
  node.sample(sampler);
  CHECK(node.tick.containers.at(0).limits.memory_max == MemoryLimit{Bytes{8192}});
}

TEST_CASE("files of a few observed containers are read at each tick, of many less often") {
  Node node;
  const auto path = [](int index) {
    const std::string number = std::to_string(100 + index);
    return "/cg/docker/" + std::string(64 - number.size(), '0') + number;
  };
  const auto put = [&](int index, const std::string& number) {
    node.write(path(index) + "/cpu.stat", "usage_usec " + number + "\n");
    node.write(path(index) + "/memory.current", "3200\n");
    node.write(path(index) + "/memory.stat", "anon " + number + "\n");
  };
  constexpr int kFew = 16;
  for (int i = 0; i < kFew; ++i) put(i, "1");
  NodeSampler sampler = node.open();
  node.sample(sampler);
  const auto put_all = [&](const std::string& number) {
    for (std::size_t i = 0; i < node.tick.containers.size(); ++i) put(static_cast<int>(i), number);
  };
  const auto have = [&](std::uint64_t number) {
    return std::ranges::count(node.tick.containers, number,
                              [](const Sample& sample) { return sample.memory.anon_bytes; });
  };
  for (const ContainerInfo& info : node.tick.appeared) sampler.set_detail(info.id, false);
  put_all("2");
  node.sample(sampler);
  CHECK(have(2) == kFew);
  put(kFew, "2");
  node.sample(sampler);
  REQUIRE(node.tick.appeared.size() == 1);
  const CgroupId last = node.tick.appeared.at(0).id;
  put_all("3");
  node.sample(sampler);
  CHECK(have(3) == 1);  // limits of the last one may still be changed
  sampler.set_detail(last, false);
  put_all("4");
  node.sample(sampler);
  CHECK(have(4) == 0);
  CHECK(have(3) == 1);
  node.remove(path(kFew));
  node.sample(sampler);
  CHECK(have(4) == kFew);
}

TEST_CASE("a new empty cgroup is reported when it is populated") {
  Node node;
  NodeSampler sampler = node.open({"/jobs/*"});
  node.sample(sampler);
  node.write("/cg/jobs/job/cgroup.events", "populated 0\nfrozen 0\n");
  CHECK(node.sample(sampler).appeared.empty());
  CHECK(node.tick.containers.empty());
  node.write("/cg/jobs/job/cgroup.events", "populated 1\nfrozen 0\n");
  CHECK(node.sample(sampler).appeared.size() == 1);
  CHECK(node.tick.containers.size() == 1);
}

TEST_CASE("an empty cgroup is reported after the grace period") {
  Node node;
  NodeSampler sampler = node.open({"/jobs/*"});
  node.sample(sampler);
  node.write("/cg/jobs/job/cgroup.events", "populated 0\n");
  for (int second = 0; second < 5; ++second) CHECK(node.sample(sampler).appeared.empty());
  CHECK(node.sample(sampler).appeared.size() == 1);
}

TEST_CASE("an empty cgroup from before the start is reported immediately, a removed one never") {
  Node node;
  node.write("/cg/jobs/first/cgroup.events", "populated 0\n");
  NodeSampler sampler = node.open({"/jobs/*"});
  CHECK(node.sample(sampler).appeared.size() == 1);
  node.write("/cg/jobs/second/cgroup.events", "populated 0\n");
  node.sample(sampler);
  node.remove("/cg/jobs/second");
  CHECK(node.sample(sampler).vanished.empty());
  for (int second = 0; second < 6; ++second) CHECK(node.sample(sampler).appeared.empty());
}

TEST_CASE("a plain directory is unaffected by a sweep at every tick") {
  Node node;
  node.make("/cg/docker/" + kDockerId);
  node.make("/cg/other");
  NodeSampler sampler = node.open();
  const CgroupId id = node.sample(sampler).appeared.at(0).id;
  for (int i = 0; i < 3; ++i) {
    node.clock.advance(std::chrono::minutes(2));
    CHECK(node.sample(sampler).appeared.empty());
    CHECK(node.tick.vanished.empty());
    CHECK(node.tick.containers.at(0).id == id);
  }
}

TEST_CASE("a host whose proc files are missing or malformed has no known capacity") {
  Node node;
  node.write("/proc/meminfo", "MemTotal: many kB\n");
  node.remove("/proc/stat");
  NodeSampler sampler = node.open();
  CHECK(node.sample(sampler).host.cpu_cores == 0);
  CHECK(node.tick.host.memory.value == 0);
}

TEST_CASE("PSI and swap are sources if /proc has them") {
  Node node;
  node.write("/proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n");
  node.write("/proc/meminfo", "MemTotal: 5 kB\nSwapTotal: 5 kB\n");
  NodeSampler sampler = node.open();
  for (const Source& source : sampler.sources())
    if (source.name == "PSI" || source.name == "swap") CHECK(source.present);
}

TEST_CASE("containers up to the limit are read, one more waits for room and is reported") {
  Node node;
  for (std::size_t i = 0; i <= kMaxContainers; ++i) node.make("/cg/jobs/" + std::to_string(i));
  NodeSampler sampler = node.open({"/jobs/*"});
  REQUIRE(node.sample(sampler).containers.size() == kMaxContainers);
  const auto complete = [&] {
    const std::vector<Source> sources = sampler.sources();
    return std::ranges::find(sources, "all cgroups", &Source::name)->present;
  };
  CHECK_FALSE(complete());
  const CgroupPath first = node.tick.appeared.at(0).path;
  node.remove("/cg" + first);
  CHECK(node.sample(sampler).containers.size() == kMaxContainers - 1);
  node.clock.advance(std::chrono::minutes(1));
  CHECK(node.sample(sampler).containers.size() == kMaxContainers);
  CHECK(node.tick.appeared.size() == 1);
  CHECK(complete());
}
