// How NodeSampler::sources() changes with time.
#include <algorithm>
#include <string_view>

#include "collectors/node_sampler.h"
#include "tests/collectors/fake_tree.h"

using namespace cgphase;

namespace {

bool is_present(const NodeSampler& sampler, std::string_view name) {
  const std::vector<Source> sources = sampler.sources();
  const auto source = std::ranges::find(sources, name, &Source::name);
  REQUIRE(source != sources.end());
  return source->present;
}

}  // namespace

TEST_CASE("a feature that appears later is a source from the next sweep on") {
  const FakeTree tree;
  tree.make("/cg");
  auto sampler = NodeSampler::open({.cgroup_root = tree.root() + "/cg",
                                    .proc_root = tree.root() + "/proc"});
  REQUIRE(sampler.has_value());
  ManualClock clock;
  NodeSample tick;
  sampler->sample(clock, tick);
  constexpr const char* kNames[] = {"memory controller", "PSI", "swap"};
  for (const char* name : kNames) CHECK_FALSE(is_present(*sampler, name));
  tree.write("/cg/cgroup.controllers", "memory\n");
  tree.write("/cg/cgroup.subtree_control", "memory\n");
  tree.write("/proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n");
  tree.write("/proc/meminfo", "MemTotal: 2048 kB\nSwapTotal: 5 kB\n");
  clock.advance(std::chrono::minutes(1));
  sampler->sample(clock, tick);
  for (const char* name : kNames) CHECK(is_present(*sampler, name));
}
