// A host that is a plain directory, and the samples of its containers.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "collectors/node_sampler.h"
#include "tests/collectors/fake_tree.h"

namespace cgphase {

inline const std::string kDockerId(64, 'a'), kOtherId(64, 'b');

struct Node : FakeTree {
  ManualClock clock;
  NodeSample tick;

  Node() {
    write("/proc/stat", "cpu  1 2 3\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5\n");
    write("/proc/meminfo", "MemTotal:        2048 kB\nMemFree: 5 kB\nSwapTotal: 0 kB\n");
    make("/cg");
    make("/run/systemd/system");  // systemd runs
  }
  NodeSampler open(std::vector<std::string> include = {}) {
    auto sampler = NodeSampler::open({.cgroup_root = root() + "/cg",
                                      .proc_root = root() + "/proc",
                                      .engine_root = root(),
                                      .include = std::move(include)});
    REQUIRE(sampler.has_value());
    return std::move(*sampler);
  }
  // Writes a limit at the root, as in a cgroup namespace.
  void limit_root(const std::string& cpu, const std::string& max, const std::string& high) const {
    write("/cg/cpu.max", cpu);
    write("/cg/memory.max", max);
    write("/cg/memory.high", high);
  }
  // A Docker container and a Podman container.
  void write_engine_files() const {
    write("/var/lib/docker/containers/" + kDockerId + "/config.v2.json",
          R"({"Name":"/web","Config":{"Image":"nginx:1","Labels":{"cgphase.mode":"enforce"}}})");
    write("/var/lib/containers/storage/overlay-containers/containers.json",
          R"([{"id":")" + kOtherId + R"(","names":["db"],"metadata":"{}"}])");
  }
  const NodeSample& sample(NodeSampler& sampler) {
    clock.advance(std::chrono::seconds(1));
    sampler.sample(clock, tick);
    return tick;
  }
};

}  // namespace cgphase
