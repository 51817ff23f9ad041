// Modes that administrators set: how long they last, and what wins over them.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/agent/agent_world.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

// The configuration allows nothing, as after an installation.
void observe_only(AgentWorld& world) {
  world.config.mode = Mode::observe;
  world.config.enforce.cgroups.clear();
  world.start();
  world.run(3);
}

bool tells(const AgentWorld& world, const std::string& words) {
  return std::ranges::any_of(world.agent->degraded(), [&](const std::string& sentence) {
    return sentence.find(words) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("a container's mode lasts over reload, restart of container and daemon, in any mode") {
  for (const Mode mode : {Mode::observe, Mode::advise, Mode::enforce}) {
    for (const bool configured : {false, true}) {
      AgentWorld world;
      if (!configured) observe_only(world);
      world.run(3);
      (void)world.agent->set_mode(world.container().info.id, mode);
      CHECK(world.container().mode == mode);
      CHECK(world.agent->reload(world.config).empty());
      CHECK(world.container().mode == mode);
      world.restart_container();
      CHECK(world.container().mode == mode);
      world.start();  // without a stop before: as after kill -9
      world.run(3);
      CHECK(world.container().mode == mode);
      (void)world.agent->set_mode(world.container().info.id, std::nullopt);
      CHECK(world.container().mode == (configured ? Mode::enforce : Mode::observe));
      world.start();
      world.run(3);
      CHECK(world.container().mode == (configured ? Mode::enforce : Mode::observe));
    }
  }
}

TEST_CASE("a mode until the restart ends with the daemon, and what lasted before comes back") {
  AgentWorld world;
  observe_only(world);
  (void)world.agent->set_mode(world.container().info.id, Mode::advise);
  (void)world.agent->set_mode(world.container().info.id, Mode::enforce, true);
  CHECK(world.container().mode == Mode::enforce);
  CHECK(world.agent->reload(world.config).empty());
  world.restart_container();
  CHECK(world.container().mode == Mode::enforce);
  world.start();
  world.run(3);
  CHECK(world.container().mode == Mode::advise);
}

TEST_CASE("a name is no permission for a container that an ordinary user could give it") {
  AgentWorld world;
  observe_only(world);
  (void)world.agent->set_mode(world.container().info.id, Mode::enforce);
  ContainerInfo imposter = world.container().info;
  imposter.id.inode += 1;
  CHECK(world.agent->overrides().asked_mode(imposter) == Mode::enforce);
  imposter.made_by_root = false;
  CHECK(world.agent->overrides().asked_mode(imposter) == Mode::observe);
  CHECK_FALSE(world.agent->overrides().own_mode(imposter));
  CHECK_FALSE(world.agent->overrides().kept_by_name(imposter, Mode::enforce));
  CHECK(world.agent->overrides().kept_by_name(imposter, Mode::observe));
}

TEST_CASE("a name takes away from every container that has it") {
  AgentWorld world;
  world.run(3);
  (void)world.agent->set_mode(world.container().info.id, Mode::observe);
  ContainerInfo other = world.container().info;
  other.id.inode += 1;
  other.made_by_root = false;
  CHECK(world.agent->overrides().asked_mode(other) == Mode::observe);
}

TEST_CASE("a container that belongs to somebody else is at most advised, whatever its name") {
  AgentWorld world;
  observe_only(world);
  (void)world.agent->set_mode(world.container().info.id, Mode::enforce);
  ContainerInfo owned = world.container().info;
  owned.hands_off = "the kubelet manages it";
  CHECK(world.agent->overrides().asked_mode(owned) == Mode::advise);
}

TEST_CASE("a host at observe is the ceiling, and modes of containers come back after it") {
  AgentWorld world;
  observe_only(world);
  (void)world.agent->set_mode(world.container().info.id, Mode::enforce);
  for (const Mode host : {Mode::observe, Mode::advise, Mode::enforce}) {
    const bool held = host == Mode::observe;
    (void)world.agent->set_mode(host);
    CHECK(world.container().mode == (held ? Mode::observe : Mode::enforce));
    CHECK(world.agent->capped().size() == (held ? 1 : 0));
    CHECK(tells(world, "holds containers below their own modes: test-a") == held);
    world.start();
    world.run(3);
    CHECK(world.container().mode == (held ? Mode::observe : Mode::enforce));
  }
  (void)world.agent->set_mode(Mode::observe);
  (void)world.agent->set_mode(std::nullopt);
  CHECK(world.container().mode == Mode::enforce);
  CHECK(world.agent->config().mode == Mode::observe);
}

TEST_CASE("a pin stays while the mode of the host changes") {
  AgentWorld world;
  world.run(3);
  world.agent->set_pin(world.container().info.id, {.cpu = Cores{0.5}, .memory = {}});
  (void)world.agent->set_mode(Mode::observe);
  (void)world.agent->set_mode(Mode::enforce);
  CHECK(world.container().pin.any());
}

TEST_CASE("kill switch and pause win over a mode that lasts") {
  AgentWorld world;
  observe_only(world);
  const CgroupId id = world.container().info.id;
  (void)world.agent->set_mode(id, Mode::enforce);
  (void)world.agent->set_paused(id, true);
  CHECK(world.container().mode == Mode::observe);
  (void)world.agent->set_paused(id, false);
  CHECK(world.container().mode == Mode::enforce);
  std::ofstream(world.config.kill_switch) << "";
  world.start();
  world.run(3);
  CHECK(world.container().mode == Mode::observe);
  std::filesystem::remove(world.config.kill_switch);
  world.run(1);
  CHECK(world.container().mode == Mode::enforce);
  world.agent->set_writable(false);
  CHECK(world.container().mode == Mode::observe);
}

TEST_CASE("a host held at observe stays so after a restart, and says so until it is let go") {
  AgentWorld world;
  world.run(3);
  (void)world.agent->set_mode(Mode::observe);
  world.start();
  world.run(3);
  CHECK(world.agent->config().mode == Mode::observe);
  CHECK(world.container().mode == Mode::observe);
  REQUIRE(world.agent->degraded().size() == 1);
  CHECK(tells(world, "`cgphase mode enforce`"));
  (void)world.agent->set_mode(Mode::enforce);
  CHECK(world.agent->degraded().empty());
  // No more than the configuration says.
  CHECK_FALSE(world.agent->overrides().table().host().in_force());
  world.start();
  world.run(3);
  CHECK(world.container().mode == Mode::enforce);
}

TEST_CASE("a reload keeps the mode of the host, and one with another mode in the file ends it") {
  AgentWorld world;
  observe_only(world);
  (void)world.agent->set_mode(Mode::advise);
  CHECK(world.agent->reload(world.config).empty());
  CHECK(world.agent->config().mode == Mode::advise);
  world.config.mode = Mode::enforce;
  CHECK(world.agent->reload(world.config).empty());
  CHECK(world.agent->config().mode == Mode::enforce);
  CHECK_FALSE(world.agent->overrides().table().host().in_force());
}

TEST_CASE("a damaged record enforces nothing, holds over reloads, and status says how to end it") {
  AgentWorld world;
  OverrideTable lost(world.tree.root() + "/holds.json");
  lost.lose();
  REQUIRE(lost.save());
  world.start();
  world.run(2);
  CHECK(world.container().mode == Mode::observe);
  CHECK(tells(world, "was damaged"));
  Config other = world.config;
  other.mode = Mode::advise;
  CHECK(world.agent->reload(other).empty());
  CHECK(world.agent->reload(world.config).empty());
  CHECK(world.container().mode == Mode::observe);
  (void)world.agent->set_mode(std::nullopt);
  CHECK(world.container().mode == Mode::enforce);
  CHECK(world.agent->degraded().empty());
}

TEST_CASE("one mode more than fits fails, and the container keeps its mode") {
  AgentWorld world;
  observe_only(world);
  OverrideTable full(world.tree.root() + "/holds.json");
  ContainerInfo info;
  for (std::size_t i = 0; i < OverrideTable::kMostContainers; ++i) {
    info.name = std::to_string(i);
    REQUIRE(full.set(info, {.paused = true, .mode = {}}));
  }
  REQUIRE(full.save());
  world.start();
  world.run(1);
  const auto report = world.agent->set_mode(world.container().info.id, Mode::enforce);
  REQUIRE(report.failures.size() == 1);
  CHECK(world.container().mode == Mode::observe);
}

TEST_CASE("an answer waits for the disk, and at most a second") {
  AgentWorld world;
  const Store::Options history{.path = ":memory:", .boot_id = "boot"};
  world.start(std::make_unique<StoreThread>(Store::open(history).value()));
  world.run(2);
  std::vector<std::string> answers;
  const auto ask = [&] {
    (void)world.agent->set_mode(world.container().info.id, Mode::advise);
    world.agent->after_save([&](const std::string& error) { answers.push_back(error); });
  };
  ask();
  CHECK(answers.empty());
  world.hand_on();
  CHECK(answers == std::vector<std::string>{""});
  const auto saved = OverrideTable::load(world.tree.root() + "/holds.json");
  REQUIRE(saved);
  CHECK(saved->of(world.container().info).mode.in_force()->mode == Mode::advise);
  ask();
  world.clock.advance(std::chrono::milliseconds(999));
  world.agent->beat();
  CHECK(answers.size() == 1);
  world.clock.advance(std::chrono::milliseconds(1));
  world.agent->beat();
  REQUIRE(answers.size() == 2);
  CHECK(answers[1] == "the disk does not answer");
  world.hand_on();
  CHECK(answers.size() == 2);
}
