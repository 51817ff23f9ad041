#include <doctest/doctest.h>
#include <fcntl.h>

#include <string>

#include "agent/agent.h"
#include "base/file.h"
#include "cgroupfs/cgroup_directory.h"
#include "collectors/cgroup_files.h"
#include "control/lease/lease_table.h"
#include "tests/collectors/fake_tree.h"
#include "tests/core/small_model.h"

using namespace cgphase;

TEST_CASE("a reload gives the fast path its numbers") {
  const FakeTree tree, runtime;
  tree.write("/cgroup.controllers", "cpu memory\n");
  ManualClock clock;
  const auto leases =
      LeaseTable::open({.runtime_dir = runtime.root(), .records = 4, .boot_id = "b"}).value();
  const auto fast_path = FastPath::create({.leases = leases.get(), .clock = &clock, .containers = 2,
                                    .pressure = false, .inotify = false}).value();
  Config config;
  config.kill_switch = tree.root() + "/disabled";
  config.proc_root = tree.root() + "/proc";
  Agent agent(config,
              Agent::Parts{.sampler = NodeSampler::open({.cgroup_root = tree.root()}).value(),
                           .core = Core::create({.policy = "hold"}, nullptr).value(),
                           .fast_path = fast_path.get(),
                           .overrides = OverrideTable::load(tree.root() + "/holds.json").value()},
              clock, [](std::function<void()> work) { work(); });
  config.safety.cpu_raise_factor = 1.5;
  CHECK(agent.reload(config).empty());

  tree.write("/box/cpu.max", "100000 100000\n");
  tree.write("/box/cpu.stat", "usage_usec 1\nthrottled_usec 0\n");
  const Fd box = open_path(tree.root() + "/box", O_RDONLY | O_DIRECTORY).value();
  const CgroupId id = identify(box.get()).value();
  const auto record = leases->record(id, "/box", Knob::cpu_max, *KnobText::from("200000 100000"),
                                   *KnobText::from("100000 100000"), "test");
  REQUIRE(fast_path->cover(id, box.get(), Knob::cpu_max, record.value()));
  tree.write("/box/cpu.stat", "usage_usec 1\nthrottled_usec 30000\n");
  clock.advance(kFastPathRiskInterval);
  fast_path->poll_once();
  CHECK(read_file(tree.root() + "/box/cpu.max", 100).value() == "150000 100000\n");
}
