#include <doctest/doctest.h>
#include <fcntl.h>

#include <chrono>
#include <memory>
#include <string>

#include "agent/agent.h"
#include "base/file.h"
#include "cgroupfs/cgroup_directory.h"
#include "collectors/cgroup_files.h"
#include "control/lease/lease_table.h"
#include "control/writer/kernel_limit_writer.h"
#include "tests/agent/observers/inline_gpu_scanner.h"
#include "tests/collectors/fake_tree.h"
#include "tests/core/small_model.h"

using namespace cgphase;

namespace {

// A container of 2 cores that has a lease from before the agent saw it, with `now` in its file.
struct FoundAgain {
  explicit FoundAgain(const std::string& now) {
    tree.write("/cgroup.controllers", "cpu memory\n");
    tree.write("/test-a/cpu.max", now + "\n");
    tree.write("/test-a/cpu.stat", "usage_usec 1\nnr_periods 1\nnr_throttled 0\n");
    tree.write("/test-a/cgroup.events", "populated 1\nfrozen 0\n");
    const Fd directory = open_path(tree.root() + "/test-a", O_RDONLY | O_DIRECTORY).value();
    id = identify(directory.get()).value();
    REQUIRE(leases->record(id, "/test-a", Knob::cpu_max, *KnobText::from("200000 100000"),
                         *KnobText::from("100000 100000"), "test"));
    writer = KernelLimitWriter::create({.cgroup_root = tree.root(), .leases = leases.get(),
                                        .allow_plain_directory = true}).value();
    Config config;
    config.mode = Mode::enforce;
    config.include = {"/test-*"};
    config.enforce.cgroups = {"/test-*"};
    config.kill_switch = tree.root() + "/disabled";
    config.proc_root = tree.root() + "/proc";
    agent.emplace(
        config,
        Agent::Parts{
            .sampler = NodeSampler::open({.cgroup_root = tree.root(), .include = config.include})
                           .value(),
            .core = Core::create({.policy = "hold", .cpu_lever = CpuLever::both},
                                 small_engine()).value(),
            .writer = writer.get(),
            .kernel_writer = writer.get(),
            .gpu_scanner = std::make_unique<InlineGpuScanner>(tree.root(), config.proc_root),
            .model = {.engine = small_engine()},
            .overrides = OverrideTable::load(tree.root() + "/holds.json").value()},
        clock, [](std::function<void()> work) { work(); });
  }

  void tick() {
    agent->tick();
    clock.advance(std::chrono::seconds(1));
  }
  std::string file() const { return read_file(tree.root() + "/test-a/cpu.max", 100).value(); }
  const ContainerView& container() const { return *agent->core().containers().at(0); }

  FakeTree tree, runtime;
  ManualClock clock;
  std::unique_ptr<LeaseTable> leases =
      LeaseTable::open({.runtime_dir = runtime.root(), .records = 4, .boot_id = "b"}).value();
  std::unique_ptr<KernelLimitWriter> writer;
  CgroupId id;
  std::optional<Agent> agent;
};

constexpr CpuMax kTwoCores{Microseconds{200'000}, Microseconds{100'000}};

}  // namespace

TEST_CASE("what was lowered before a container was found again goes back, and is no one's revert") {
  FoundAgain world("100000 100000");
  for (int i = 0; i < 3; ++i) {
    world.tick();
    CAPTURE(i);
    CHECK(world.file() == "200000 100000\n");
    CHECK(world.container().original.cpu_max == kTwoCores);
    CHECK(world.container().in_force.cpu_max == kTwoCores);
    CHECK(world.container().cpu_blocked_by != Verdict::standing_down);
    CHECK(world.container().cpu_blocked_by != Verdict::silently_reverted);
  }
  CHECK(world.leases->leased_records().empty());
  CHECK(world.agent->journal().recent_decisions().empty());
}

TEST_CASE("what somebody set while a container was lost from sight is its original") {
  FoundAgain world("300000 100000");
  world.tick();
  world.tick();
  CHECK(world.file() == "300000 100000\n");
  CHECK(world.container().original.cpu_max == CpuMax{Microseconds{300'000}, Microseconds{100'000}});
  CHECK(world.leases->leased_records().empty());
  CHECK(world.agent->journal().recent_decisions().empty());
}
