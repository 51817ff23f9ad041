#include "collectors/ancestor_limits.h"

#include <doctest/doctest.h>

#include <chrono>
#include <limits>
#include <string>

#include "tests/collectors/fake_node.h"

using namespace cgphase;

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
const std::string kScope = "/work.slice/jobs.slice/docker-" + kDockerId + ".scope";

struct SlicedNode : Node {
  SlicedNode() {
    write("/cg" + kScope + "/cpu.max", "50000 100000\n");
    limit("/work.slice", "200000 100000\n", "8589934592\n");
    limit("/work.slice/jobs.slice", "max 100000\n", "4294967296\n");
  }
  void limit(const std::string& slice, const std::string& cpu, const std::string& memory) const {
    write("/cg" + slice + "/cpu.max", cpu);
    write("/cg" + slice + "/memory.max", memory);
  }
};

}  // namespace

TEST_CASE("the slices around a container grant their lowest limits, its own do not count") {
  SlicedNode node;
  auto sampler = node.open();
  const NodeSample& tick = node.sample(sampler);
  REQUIRE(tick.appeared.size() == 1);
  REQUIRE(tick.ancestor_limits.size() == 1);
  CHECK(tick.ancestor_limits[0].first == tick.appeared[0].id);
  CHECK(tick.ancestor_limits[0].second.cpu_cores == 2);
  CHECK(tick.ancestor_limits[0].second.memory_bytes == 4294967296.0);
}

TEST_CASE("memory.high of an ancestor limits what memory.max would grant") {
  SlicedNode node;
  node.write("/cg/work.slice/memory.high", "3221225472\n");
  auto sampler = node.open();
  REQUIRE(node.sample(sampler).ancestor_limits.size() == 1);
  CHECK(node.tick.ancestor_limits[0].second.memory_bytes == 3221225472.0);
}

TEST_CASE("the limits of a cgroup namespace's root are the host's capacity") {
  Node node;
  node.write("/proc/meminfo", "MemTotal:      1000000 kB\nSwapTotal: 0 kB\n");
  node.write("/cg/docker/" + kDockerId + "/cpu.max", "max 100000\n");
  node.limit_root("50000 100000\n", "268435456\n", "max\n");
  {
    auto sampler = node.open();
    CHECK(node.sample(sampler).host.cpu_cores == 0.5);
    CHECK(node.tick.host.memory == Bytes{256 * kMiB});
    REQUIRE(node.tick.ancestor_limits.size() == 1);
    CHECK(node.tick.ancestor_limits[0].second ==
          AncestorLimits{.cpu_cores = 0.5, .memory_bytes = 268435456.0});
  }
  node.limit_root("max 100000\n", "max\n", "134217728\n");
  auto sampler = node.open();
  CHECK(node.sample(sampler).host.cpu_cores == 2);
  CHECK(node.tick.host.memory == Bytes{128 * kMiB});
}

TEST_CASE("limits of a namespace above the machine's capacity have no effect") {
  Node node;
  node.limit_root("800000 100000\n", "68719476736\n", "68719476736\n");
  auto sampler = node.open();
  CHECK(node.sample(sampler).host.cpu_cores == 2);
  CHECK(node.tick.host.memory == Bytes{2048 * 1024});
}

TEST_CASE("a truncated limit counts as no limit") {
  SlicedNode node;
  node.limit("/work.slice", "200000 1000", "85899");
  auto sampler = node.open();
  REQUIRE(node.sample(sampler).ancestor_limits.size() == 1);
  CHECK(node.tick.ancestor_limits[0].second.memory_bytes == 4294967296.0);
  CHECK(node.tick.ancestor_limits[0].second.cpu_cores == kNoLimit);
}

TEST_CASE("granted resources are checked once a minute and reported on a change") {
  SlicedNode node;
  auto sampler = node.open();
  REQUIRE(node.sample(sampler).ancestor_limits.size() == 1);
  node.limit("/work.slice", "max 100000\n", "max\n");
  for (int second = 0; second < 58; ++second) CHECK(node.sample(sampler).ancestor_limits.empty());
  for (int second = 0; second < 3 && node.sample(sampler).ancestor_limits.empty(); ++second) {
  }
  REQUIRE(node.tick.ancestor_limits.size() == 1);
  CHECK(node.tick.ancestor_limits[0].second.cpu_cores == kNoLimit);
  CHECK(node.tick.ancestor_limits[0].second.memory_bytes == 4294967296.0);
  for (int second = 0; second < 130; ++second) CHECK(node.sample(sampler).ancestor_limits.empty());
}

TEST_CASE("without a readable limit of a slice, nothing is reported") {
  Node node;
  node.write("/cg/plain.slice/docker-" + kDockerId + ".scope/cpu.max", "50000 100000\n");
  node.write("/cg/plain.slice/cpu.max", "nonsense\n");
  auto sampler = node.open();
  const NodeSample& tick = node.sample(sampler);
  CHECK(tick.appeared.size() == 1);
  CHECK(tick.ancestor_limits.empty());
}
