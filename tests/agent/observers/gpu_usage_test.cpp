#include "agent/observers/gpu_usage.h"

#include <doctest/doctest.h>

#include <memory>

#include "agent/answers.h"
#include "tests/agent/agent_world.h"
#include "tests/agent/observers/told_gpus.h"

using namespace cgphase;
using namespace cgphase::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

GpuClient on_gpu(std::size_t device, const std::string& cgroup, const GpuStat& use) {
  return {.pid = 11, .cgroup = cgroup, .device = device, .use = use};
}

// Containers 1, 2, ... at the paths given.
struct GpuTick {
  explicit GpuTick(const std::vector<std::string>& paths) {
    auto source = std::make_unique<ToldGpus>();
    gpus = source.get();
    usage.emplace(std::move(source));
    for (const std::string& path : paths) {
      const CgroupId id{1, tick.containers.size() + 1};
      tick.appeared.push_back({.id = id, .path = path});
      tick.containers.emplace_back().id = id;
    }
    tick.time = MonotonicTime(seconds(100));
  }
  const GpuStat& fill(std::size_t container = 1) {
    usage->fill(tick);
    tick.appeared.clear();
    tick.vanished.clear();
    return tick.containers.at(container - 1).gpu;
  }

  ToldGpus* gpus = nullptr;
  std::optional<GpuUsage> usage;
  NodeSample tick;
};

}  // namespace

TEST_CASE("a container uses what its processes use, on all GPUs together") {
  GpuTick world({"/a", "/b"});
  world.gpus->tell(world.tick.time, {on_gpu(1, "/a", {0.75, 0.5, Bytes{100}}),
                                     on_gpu(0, "/a/below/it", {0.5, {}, Bytes{10}}),
                                     on_gpu(1, "/a", {{}, {}, Bytes{1}}),
                                     on_gpu(0, "/elsewhere", {0.25, 0.25, Bytes{7}})});
  CHECK(world.fill() == GpuStat{1.25, 0.5, Bytes{111}});
  CHECK(world.usage->gpus_of({1, 1}) == std::vector<std::string>{"GPU-1", "GPU-2"});
  CHECK(world.fill(2) == GpuStat{});
  CHECK(world.usage->gpus_of({1, 2}).empty());
  CHECK(world.usage->devices().size() == 2);
}

TEST_CASE("a process on a GPU is the innermost container's that its cgroup lies in") {
  GpuTick world({"/a", "/a/b", "/a/bc"});
  world.gpus->tell(world.tick.time, {on_gpu(0, "/a/b/c", {0.5, {}, {}}),
                                     on_gpu(0, "", {0.25, {}, {}}), on_gpu(0, "a", {0.25, {}, {}}),
                                     on_gpu(0, "/", {0.25, {}, {}})});
  CHECK(world.fill(1) == GpuStat{});
  CHECK(world.fill(2) == GpuStat{0.5, {}, {}});
  CHECK(world.fill(3) == GpuStat{});
}

TEST_CASE("an old reading of a driver counts for no container") {
  GpuTick world({"/a"});
  world.gpus->tell(world.tick.time - GpuSource::kStale, {on_gpu(0, "/a", {0.5, {}, {}})});
  CHECK(world.fill().utilisation_ratio == 0.5);
  world.tick.time += milliseconds(1);
  CHECK(world.fill() == GpuStat{});
  CHECK(world.usage->gpus_of({1, 1}).empty());
  CHECK(world.usage->devices().empty());
}

TEST_CASE("the source hears whose processes to look for, and forgets who is gone") {
  GpuTick world({"/b", "/a"});
  world.fill();
  CHECK(world.gpus->containers == std::vector<CgroupPath>{"/a", "/b"});
  // Its successor is there before it is seen to be gone.
  world.tick.appeared = {{.id = {1, 9}, .path = "/a"}};
  world.tick.vanished = {{1, 2}};
  world.tick.containers[1].id = {1, 9};
  world.gpus->tell(world.tick.time, {on_gpu(0, "/a", {0.5, {}, {}})});
  CHECK(world.fill(2).utilisation_ratio == 0.5);
  CHECK(world.gpus->containers == std::vector<CgroupPath>{"/a", "/b"});
  world.tick.vanished = {{1, 9}, {1, 1}};
  world.tick.containers.clear();
  world.usage->fill(world.tick);
  CHECK(world.gpus->containers.empty());
}

TEST_CASE("a tick's samples, status and the container's report carry its GPUs") {
  AgentWorld world;
  world.tick();
  world.gpus->tell(world.clock.monotonic_now(), {on_gpu(1, "/test-a", {0.75, 0.5, Bytes{100}})});
  world.tick();
  CHECK(world.container().sample.gpu == GpuStat{0.75, 0.5, Bytes{100}});
  const Answers answers(*world.agent, world.clock, [](const std::function<void()>&) {},
                        Answers::Facts{.companion_alive = [] { return true; }});
  const ContainerReport report = answers.reports().at(0);
  CHECK(report.gpu == world.container().sample.gpu);
  CHECK(report.gpu_ids == std::vector<std::string>{"GPU-2"});
  const StatusReport status = answers.status();
  REQUIRE(status.gpus.size() == 2);
  CHECK(status.gpus[1].id == "GPU-2");
  CHECK(status.gpus[1].memory_total_bytes == 1024);
  CHECK(std::ranges::count(status.sources, "GPU telemetry", &SourceReport::name) == 1);
}
