#include "agent/gpu_watch.h"

#include <doctest/doctest.h>

#include "tests/collectors/fake_tree.h"

using namespace cgphase;

namespace {

using std::chrono::seconds;

// A host with a GPU and containers of one process each, that shares the host's /dev.
class GpuHost {
 public:
  GpuHost() : sampler_(open()), watch(tree.root() + "/proc") {
    tree.make_device("/proc/1/root/dev/nvidia0");
  }

  void add(const std::string& name, int pid) const {
    tree.write("/cg/" + name + "/cpu.max", "max 100000\n");
    tree.write("/cg/" + name + "/cgroup.procs", std::to_string(pid) + "\n");
    set_populated(name, true);
    tree.link(at(pid) + "/root", tree.root() + "/proc/1/root");
    tree.make(at(pid) + "/fd");
  }
  void set_populated(const std::string& name, bool populated) const {
    tree.write("/cg/" + name + "/cgroup.events", populated ? "populated 1\n" : "populated 0\n");
  }
  void open_gpu(int pid) const { tree.link(at(pid) + "/fd/3", "/dev/nvidia0"); }
  void close_gpu(int pid) const { tree.remove(at(pid) + "/fd/3"); }

  bool look(seconds after = seconds(1)) {
    clock.advance(after);
    sampler_.sample(clock, tick);
    return watch.look(tick, sampler_);
  }
  // Of the only container.
  bool may_have_gpu() const { return watch.may_have_gpu(tick.containers.at(0).id); }

  FakeTree tree;

 private:
  static std::string at(int pid) { return "/proc/" + std::to_string(pid); }
  NodeSampler open() const {
    tree.write("/cg/cgroup.controllers", "cpu memory\n");
    auto sampler = NodeSampler::open({.cgroup_root = tree.root() + "/cg", .include = {"/test-*"}});
    REQUIRE(sampler.has_value());
    return std::move(*sampler);
  }
  ManualClock clock;
  NodeSampler sampler_;

 public:
  NodeSample tick;
  GpuWatch watch;
};

}  // namespace

TEST_CASE("a container is looked at when it comes, before anything is decided of it") {
  GpuHost host;
  host.add("test-a", 77);
  host.open_gpu(77);
  CHECK(host.look());
  CHECK(host.may_have_gpu());
  CHECK(host.watch.source().present);
  CHECK(host.watch.source().detail == "seen in 1 containers");
}

TEST_CASE("a GPU that is opened later is seen within a minute, and stays until the processes end") {
  GpuHost host;
  host.add("test-a", 77);
  host.look();
  CHECK_FALSE(host.may_have_gpu());
  host.open_gpu(77);
  host.look(seconds(59));
  CHECK_FALSE(host.may_have_gpu());
  CHECK(host.look());
  CHECK(host.may_have_gpu());
  host.close_gpu(77);
  host.look(GpuWatch::kPeriod * 2);
  CHECK(host.may_have_gpu());
  host.set_populated("test-a", false);
  CHECK(host.look());
  CHECK_FALSE(host.may_have_gpu());
  host.set_populated("test-a", true);
  host.look();  // at once
  CHECK_FALSE(host.may_have_gpu());
}

TEST_CASE("what cannot be seen is not ruled out, but on a host without a GPU it is") {
  GpuHost host;
  host.add("test-a", 77);
  host.tree.remove("/proc/77");
  host.look();
  CHECK(host.may_have_gpu());
  CHECK(host.watch.source().detail == "seen in 0 containers, not to be ruled out in 1");
  host.tree.remove("/proc/1/root/dev/nvidia0");
  CHECK(host.look(GpuWatch::kPeriod));
  CHECK_FALSE(host.may_have_gpu());
  CHECK_FALSE(host.watch.source().present);
}

TEST_CASE("a container that is gone is forgotten, one that never was has no GPU") {
  GpuHost host;
  host.add("test-a", 77);
  host.open_gpu(77);
  host.look();
  const CgroupId id = host.tick.containers.at(0).id;
  CHECK(host.watch.may_have_gpu(id));
  CHECK_FALSE(host.watch.may_have_gpu(CgroupId{1, 2}));
  host.tree.remove("/cg/test-a");
  host.look();
  CHECK_FALSE(host.watch.may_have_gpu(id));
}

TEST_CASE("what is too much for one tick waits, unknown, for the next, and nobody waits for ever") {
  GpuHost host;
  host.add("test-a", 77);
  host.add("test-b", 78);
  SUBCASE("processes") {
    for (const char* name : {"test-a", "test-b"}) {
      std::string pids;
      for (std::size_t i = 0; i < GpuWatch::kEnoughProcesses; ++i) pids += "77\n";
      host.tree.write("/cg/" + std::string(name) + "/cgroup.procs", pids);
    }
  }
  SUBCASE("descriptors") {
    for (const char* process : {"/proc/77", "/proc/78"})
      for (std::size_t i = 0; i < GpuWatch::kEnoughEntries; ++i)
        host.tree.link(process + ("/fd/" + std::to_string(i)), "/dev/null");
  }
  const auto unknown = [&] {
    int count = 0;
    for (const Sample& sample : host.tick.containers)
      count += host.watch.may_have_gpu(sample.id) ? 1 : 0;
    return count;
  };
  host.look();
  CHECK(unknown() == 1);
  CHECK(host.look());
  CHECK(unknown() == 0);
}
