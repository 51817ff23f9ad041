#include "agent/agent.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "policy/safety/safety_memory_json.h"
#include "tests/agent/agent_world.h"

using namespace cgphase;
using namespace cgphase::test;

TEST_CASE("an opted-in container that needs little is lowered, and the originals are reported") {
  AgentWorld world;
  REQUIRE(world.run_until_lowered());
  const LimitChange& change = world.changes().front();
  CHECK(change.path == "/test-a");
  CHECK_FALSE(change.raise);
  CHECK(change.old_limits.cpu_cores()->value == 1.0);
  CHECK(world.container().original.memory_bytes()->value == kGiB);
}

TEST_CASE("a container that the configuration does not name is only advised") {
  AgentWorld world;
  world.config.enforce.cgroups.clear();
  world.start();
  world.run(200);
  CHECK(world.container().mode == Mode::advise);
  CHECK(world.changes().empty());
}

// rule: S-01
TEST_CASE("the kill switch restores every limit in the next tick and observes until it is gone") {
  AgentWorld world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  const std::size_t before = world.changes().size();
  std::ofstream(world.config.kill_switch) << "";
  world.run(1);
  CHECK(world.agent->kill_switch());
  CHECK(world.container().mode == Mode::observe);
  CHECK(world.original());
  world.run(200);
  CHECK(world.changes().size() == before);
  std::filesystem::remove(world.config.kill_switch);
  world.run(1);
  CHECK(world.container().mode == Mode::enforce);
}

// rule: S-09
TEST_CASE("beside another manager of limits everything is the original until it is gone") {
  AgentWorld world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  const std::size_t before = world.changes().size();
  world.write_process(812, "kubelet");
  world.run(60);
  CHECK(world.agent->standing_down() == "the kubelet manages limits here (pid 812)");
  CHECK(world.original());
  CHECK(world.container().mode == Mode::advise);
  const auto& journal = world.agent->journal().recent_decisions();
  const auto reported = [&](auto matches) { return std::ranges::any_of(journal, matches); };
  CHECK(reported([](const JournalDecision& entry) {
    return entry.decision.reason == Reason::another_manager;
  }));
  world.run(200);
  CHECK(reported([](const JournalDecision& entry) {
    return entry.decision.verdict == Verdict::hands_off;
  }));
  CHECK(world.original());
  world.tree.remove("/proc/812");
  world.run(60);
  CHECK(world.agent->standing_down().empty());
  CHECK(world.container().mode == Mode::enforce);
  for (int i = 0; i < 600 && world.changes().size() == before; ++i) world.tick();
  CHECK(world.changes().size() > before);
}

TEST_CASE("an administrator's mode does not go beyond another manager") {
  AgentWorld world;
  world.write_process(812, "nomad");
  world.run(3);
  world.agent->set_mode(Mode::enforce);
  world.agent->set_mode(world.container().info.id, Mode::enforce);
  CHECK(world.container().mode == Mode::advise);
  world.run(200);
  CHECK(world.changes().empty());
}

TEST_CASE("where nobody can look for other managers nothing is lowered, and a look that fails "
          "later changes nothing") {
  AgentWorld world;
  world.tree.remove("/proc");
  world.start();
  world.run(200);
  CHECK(world.changes().empty());
  CHECK(world.agent->standing_down().starts_with("other managers of limits cannot be detected: "));
  world.write_process(1, "systemd");
  CHECK(world.run_until_lowered());
  world.tree.remove("/proc");
  world.run(120);
  CHECK(world.agent->standing_down().empty());
  CHECK(world.container().mode == Mode::enforce);
}

TEST_CASE("a container that opens a GPU gets its quota back, and keeps it until it has ended") {
  AgentWorld world;
  world.tree.make_device("/proc/1/root/dev/nvidia0");
  world.write_process(77, "trainer");
  world.tree.write("/test-a/cgroup.procs", "77\n");
  world.tree.link("/proc/77/root", world.tree.root() + "/proc/1/root");
  world.tree.link("/proc/77/fd/0", "/dev/null");
  const auto cores = [&] { return world.container().sample.limits.cpu_cores()->value; };
  for (int i = 0; i < 300 && (world.changes().empty() || cores() == 1); ++i) world.tick();
  REQUIRE(cores() < 1);
  world.tree.link("/proc/77/fd/9", "/dev/nvidia0");
  world.run(62);  // a look a minute
  CHECK(cores() == 1);
  CHECK(world.container().cpu_blocked_by == Verdict::gpu_container);
  const auto& decisions = world.agent->journal().recent_decisions();
  CHECK(std::ranges::any_of(decisions, [](const JournalDecision& entry) {
    return entry.decision.reason == Reason::gpu_seen;
  }));
  world.tree.remove("/proc/77/fd/9");
  world.run(700);
  CHECK(cores() == 1);
  CHECK(world.container().sample.limits.memory_bytes()->value < kGiB);
  world.restart_container();
  world.tree.write("/test-a/cgroup.procs", "77\n");
  for (int i = 0; i < 300 && cores() == 1; ++i) world.tick();
  CHECK(cores() < 1);
}

// rule: CPU-04
TEST_CASE("a GPU that is opened right before a quota would come down for the first time is seen") {
  AgentWorld world;
  world.tree.make_device("/proc/1/root/dev/nvidia0");
  world.write_process(77, "trainer");
  world.tree.write("/test-a/cgroup.procs", "77\n");
  world.tree.link("/proc/77/root", world.tree.root() + "/proc/1/root");
  world.tree.link("/proc/77/fd/0", "/dev/null");
  world.run(3);
  REQUIRE(world.container().cpu_blocked_by !=
          Verdict::gpu_container);  // looked at, and not lowered
  REQUIRE(world.changes().empty());
  world.tree.link("/proc/77/fd/9", "/dev/nvidia0");
  for (int i = 0; i < 300; ++i) {
    world.tick();
    REQUIRE(world.container().sample.limits.cpu_cores()->value == 1);
  }
  CHECK(world.container().sample.limits.memory_bytes()->value < kGiB);
}

TEST_CASE("an unknown manager is recognised and reported, and its limits stay") {
  AgentWorld world;
  world.config.safety.stand_down = std::chrono::minutes(0);
  world.start();
  for (int round = 0; round < 3; ++round) {
    CHECK(world.agent->degraded().empty());
    const auto lowered = [&] {
      return world.container().sample.limits.memory_high->bytes.has_value();
    };
    for (int i = 0; i < 300 && !(i > 0 && lowered()); ++i) world.tick();
    REQUIRE(lowered());
    world.run(15);
    world.tree.write("/test-a/memory.max", std::to_string(900'000'000 + 4096 * round) + "\n");
    world.run(2);
  }
  CHECK(world.container().memory_blocked_by == Verdict::rival);
  REQUIRE(world.agent->degraded().size() == 1);
  CHECK(world.agent->degraded()[0].ends_with("again and again: test-a"));
  const std::size_t before = world.changes().size();
  world.run(300);
  CHECK(world.container().sample.limits.memory_bytes()->value == 900'000'000 + 4096 * 2);
  CHECK(world.changes().size() == before);
}

TEST_CASE("pausing a container restores it, resuming gives it back its mode") {
  AgentWorld world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  const CgroupId id = world.container().info.id;
  world.agent->set_paused(id, true);
  CHECK(world.original());
  CHECK(world.container().mode == Mode::observe);
  world.agent->set_paused(id, false);
  CHECK(world.container().mode == Mode::enforce);
}

TEST_CASE("a pause outlives the container and the daemon, until it is taken back") {
  AgentWorld world;
  world.run(3);
  world.agent->set_paused(world.container().info.id, true);
  world.restart_container();
  CHECK(world.agent->overrides().paused(world.container().info));
  CHECK(world.container().mode == Mode::observe);
  world.start();
  world.run(3);
  CHECK(world.container().mode == Mode::observe);
  world.agent->set_paused(world.container().info.id, false);
  world.start();
  world.run(3);
  CHECK(world.container().mode == Mode::enforce);
}

TEST_CASE("what an OOM under a lowered limit taught outlives the daemon") {
  AgentWorld world;
  const Store::Options history{.path = world.tree.root() + "/history.db", .boot_id = "boot"};
  world.start(std::make_unique<StoreThread>(Store::open(history).value()));
  const auto lowered = [&] {
    return world.container().sample.limits.memory_bytes()->value < kGiB;
  };
  world.run(3);
  for (int i = 0; i < 300 && !lowered(); ++i) world.tick();
  REQUIRE(lowered());
  world.tree.write("/test-a/memory.events", "low 0\nhigh 0\nmax 1\noom 1\noom_kill 1\n");
  world.run(2);
  const WallTime now = world.clock.wall_now();
  const double floor = world.agent->core().safety_memory().ooms.floor_bytes("test-a", now);
  CHECK(floor > 0.9 * kGiB);
  REQUIRE(world.agent->store_all().has_value());
  world.agent.reset();
  Store store = Store::open(history).value();
  const auto memory = safety_memory_from_json(store.load_learned(kSafetyMemoryName).value());
  REQUIRE(memory.has_value());
  CHECK(memory->ooms.floor_bytes("test-a", now) == floor);
  CHECK(memory->quarantines.left("test-a", Resource::memory, now) > std::chrono::hours(23));
  world.write_container();
  world.start(nullptr, *memory);
  world.run(400);
  CHECK(world.container().sample.limits.memory_bytes()->value == kGiB);
  CHECK(world.container().memory_blocked_by == Verdict::quarantined);
}

TEST_CASE("what an OOM taught and the disk refuses is tried again every ten seconds") {
  AgentWorld world;
  const Store::Options history{.path = world.tree.root() + "/history.db", .boot_id = "boot"};
  world.start(std::make_unique<StoreThread>(Store::open(history).value()));
  for (int i = 0; i < 300 && world.changes().empty(); ++i) world.tick();
  world.run(60);
  REQUIRE(world.container().sample.limits.memory_bytes()->value < kGiB);
  StoreThread& store = *world.agent->store();
  REQUIRE(store.flush_and_stop().has_value());  // refuses all from now on
  const auto refused = [&] { return store.counts().refused_queries; };
  const std::uint64_t before = refused();
  world.tree.write("/test-a/memory.events", "low 0\nhigh 0\nmax 1\noom 1\noom_kill 1\n");
  world.tick();
  CHECK(refused() == before + 1);
  world.run(9);
  CHECK(refused() == before + 1);
  world.run(1);
  CHECK(refused() == before + 2);
  world.run(30);
  CHECK(refused() == before + 5);
  (void)world.agent->store_all();
  CHECK(refused() == before + 6);
}

TEST_CASE("a pause that cannot be stored is in force, is reported, and is stored later") {
  AgentWorld world;
  world.run(3);
  std::filesystem::create_directories(world.tree.root() + "/holds.json");
  world.agent->set_paused(world.container().info.id, true);
  CHECK(world.container().mode == Mode::observe);
  REQUIRE(world.agent->degraded().size() == 1);
  CHECK(world.agent->degraded()[0].find("holds.json") != std::string::npos);
  std::filesystem::remove(world.tree.root() + "/holds.json");
  world.run(10);
  CHECK(world.agent->degraded().empty());
  CHECK(OverrideTable::load(world.tree.root() + "/holds.json")->of(world.container().info).paused);
}

TEST_CASE("a class sets the weight, and follows the configuration when it is loaded again") {
  AgentWorld world;
  world.tree.write("/test-a/cpu.weight", "100\n");
  const std::string file = world.tree.root() + "/test-a/cpu.weight";
  const auto weight = [&] { return read_file(file, 9).value(); };
  world.config.containers = {"test-* class=critical", "/test-a class=batch memory.min=1G"};
  world.start();
  world.run(2);
  CHECK(weight() == "11\n");
  CHECK(world.container().terms == Terms{ServiceClass::batch, std::nullopt, Bytes{kGiB}});
  CHECK_FALSE(world.changes().front().raise);
  world.config.containers.pop_back();
  CHECK(world.agent->reload(world.config).empty());
  world.run(2);
  CHECK(weight() == "999\n");
  CHECK_FALSE(world.changes().back().raise);  // it starts from the value that was read
  world.config.containers.clear();
  CHECK(world.agent->reload(world.config).empty());
  world.run(2);
  CHECK(weight() == "100\n");
}

TEST_CASE("a reload while there is no companion does not end the mode") {
  AgentWorld world;
  world.run(2);
  world.agent->set_writable(false);
  CHECK(world.container().mode == Mode::observe);
  CHECK(world.agent->reload(world.config).empty());
  CHECK(world.agent->config().mode == Mode::enforce);
  world.agent->set_writable(true);
  CHECK(world.container().mode == Mode::enforce);
}

TEST_CASE("a reload reports that lower_gpu_quota applies to new containers") {
  AgentWorld world;
  world.run(2);
  Config other = world.config;
  other.safety.lower_gpu_quota = true;
  other.store.cap.value *= 2;
  CHECK(world.agent->reload(other) ==
        std::vector<std::string>{"store.cap changes only with a restart",
                                 "lower_gpu_quota applies to containers that appear from now on"});
}

TEST_CASE("a reload reports keys that need a restart, and keeps their values") {
  AgentWorld world;
  Config other = world.config;
  other.policy = "phase";
  const auto kept = world.agent->reload(other);
  REQUIRE(kept.size() == 1);
  CHECK(kept[0].starts_with("policy "));
  CHECK(world.agent->config().policy == "hold");
  other = world.config;
  other.bpf.enabled = false;
  CHECK(world.agent->reload(other) ==
        std::vector<std::string>{"bpf.enabled changes only with a restart"});
}

TEST_CASE("a reloaded risk is reported to need a restart, and is not shown as in force") {
  AgentWorld world;
  Config other = world.config;
  other.risk = 0.01;
  const auto kept = world.agent->reload(other);
  REQUIRE(kept.size() == 1);
  CHECK(kept[0] == "risk changes only with a restart");
  CHECK(world.agent->config().risk == world.config.risk);
}

TEST_CASE("what a container had saved stays in the totals when it is gone") {
  AgentWorld world;
  REQUIRE(world.run_until_lowered());
  world.run(30);
  const double saved = world.container().saved_byte_seconds;
  REQUIRE(saved > 0);
  world.tree.remove("/test-a");
  world.agent->tick();
  CHECK(world.agent->core().containers().empty());
  CHECK(world.agent->totals().saved_byte_seconds == doctest::Approx(saved));
}

// rule: MEM-04
TEST_CASE("the need is read again before memory.high falls, against 90 % of the new limit") {
  AgentWorld world;
  world.run(300);
  bool memory_fell = false;
  for (const LimitChange& change : world.changes()) {
    const bool falls = compare_knob(Knob::memory_high, change.new_limits, change.old_limits) < 0;
    memory_fell = memory_fell || falls;
    CHECK(change.memory_need_ceiling.has_value() == falls);
    if (!falls) continue;
    const std::uint64_t limit = change.new_limits.memory_bytes()->value;
    CHECK(change.memory_need_ceiling->value == limit * 9 / 10);
  }
  CHECK(memory_fell);
}

// rule: MEM-06
TEST_CASE("cache in the way is squeezed by 1 % in six seconds, only while pressure is quiet") {
  constexpr const char* kQuiet = "some avg10=0.09 avg60=0.09 avg300=9.00 total=0\n";
  AgentWorld world;
  // Nobody else's rule is to stop it.
  world.config.safety.quiet_memory_io_some_avg10 = 1;
  world.tree.write("/test-a/cpu.max", "max 100000\n");  // so that memory is alone
  for (const char* file : {"/test-a/memory.pressure", "/test-a/io.pressure"})
    world.tree.write(file, kQuiet);
  world.tree.write("/test-a/memory.current", "1063256064\n");
  world.tree.write("/test-a/memory.stat", "anon 104857600\nfile 958398464\nshmem 0\nkernel 0\n"
                                          "sock 0\ninactive_file 102400000\n"
                                          "active_file 855998464\n");
  world.start();
  const auto& reclaims = world.writer->recording.reclaims();
  for (int i = 0; i < 300 && reclaims.empty(); ++i) world.tick();
  REQUIRE(world.container().memory_blocked_by == Verdict::cache_in_way);
  world.run(59);
  CHECK(reclaims.size() == 10);
  for (const auto& reclaim : reclaims) {
    CHECK(reclaim.id == world.container().info.id);
    CHECK(reclaim.bytes.value == 1'024'000);
  }
  for (const char* file : {"/test-a/memory.pressure", "/test-a/io.pressure"})
    for (const char* loud : {"some avg10=0.10 avg60=0.00 avg300=0.00 total=0\n",
                             "some avg10=0.00 avg60=0.10 avg300=0.00 total=0\n"}) {
      CAPTURE(std::string(file));
      CAPTURE(std::string(loud));
      const std::size_t before = reclaims.size();
      world.tree.write(file, loud);
      world.run(12);
      CHECK(reclaims.size() == before);
      world.tree.write(file, kQuiet);
      world.run(6);
      CHECK(reclaims.size() == before + 1);
    }
}

TEST_CASE("stopping restores everything that was lowered") {
  AgentWorld world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  CHECK_FALSE(world.original());
  const auto report = world.agent->stop();
  CHECK(report.restored > 0);
  CHECK(report.failures.empty());
  CHECK(world.original());
}
