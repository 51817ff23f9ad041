// What the safety rules know of a container that was only observed, and what they must measure
// first.
#include <doctest/doctest.h>

#include "tests/policy/safety/safety_world.h"

using namespace cgphase;

namespace {

// The world of a container that was observed and is enforced from now on.
SafetyWorld observed(int ticks) {
  SafetyWorld world;
  world.input.mode = Mode::observe;
  world.ticks(ticks);
  world.input.mode = Mode::enforce;
  return world;
}

}  // namespace

TEST_CASE("an observed container is lowered no sooner than a new one, even with earlier runs") {
  for (const Resource resource : {Resource::cpu, Resource::memory}) {
    SafetyWorld fresh, late = observed(500);
    for (SafetyWorld* world : {&fresh, &late}) world->recommendation.earlier_runs = 100;
    int fresh_ticks = 0, late_ticks = 0;
    while (fresh_ticks < 300 && !fresh.lowers(resource, 1)) fresh_ticks += 1;
    while (late_ticks < 300 && !late.lowers(resource, 1)) late_ticks += 1;
    CHECK(late_ticks >= fresh_ticks);
    CHECK(late_ticks >= 59);  // enough samples of its own, and a minute of need
    CHECK(late_ticks < 120);
  }
}

TEST_CASE("after observing, a limit is lowered in a phase only after samples of that phase") {
  SafetyWorld world = observed(500);
  world.ticks(50);
  world.input.phase = SafetyWorld::known(1);
  CHECK_FALSE(world.lowers(Resource::cpu, 59));
  CHECK(world.safety.blocked_by(Resource::cpu) == Verdict::not_enough_samples);
  CHECK(world.lowers(Resource::cpu, 2));
}

TEST_CASE("a memory event while observing starts a cooldown") {
  SafetyWorld world = observed(200);
  world.input.mode = Mode::observe;
  *world.sample.memory_events.max += 1;
  world.tick();
  world.input.mode = Mode::enforce;
  CHECK_FALSE(world.lowers(Resource::memory, 298));
  CHECK(world.lowers(Resource::memory, 5));
}

TEST_CASE("a limit that somebody changed while observing is the original") {
  SafetyWorld world = observed(200);
  world.input.mode = Mode::observe;
  world.sample.limits.memory_max = MemoryLimit{Bytes{6 * kGiB}};
  world.ticks(2);
  CHECK(world.safety.original().memory_bytes() == Bytes{6 * kGiB});
  world.input.mode = Mode::enforce;
  world.tick();
  CHECK(world.safety.blocked_by(Resource::memory) == Verdict::standing_down);
}

TEST_CASE("after advise and observe, a container must be measured again") {
  SafetyWorld world;
  world.input.mode = Mode::advise;
  world.ticks(200);
  world.input.mode = Mode::observe;
  world.tick();
  CHECK(world.safety.blocked_by(Resource::cpu) == Verdict::observe_mode);
  world.input.mode = Mode::enforce;
  CHECK_FALSE(world.lowers(Resource::cpu, 59));
  CHECK(world.lowers(Resource::cpu, 5));
}

TEST_CASE("a switch to observe restores lowered limits and continues to measure") {
  SafetyWorld world;
  REQUIRE(world.lowers(Resource::cpu, kLong));
  world.input.mode = Mode::observe;
  const auto back = world.find(Resource::cpu, Direction::raise, 3);
  REQUIRE(back.has_value());
  CHECK(back->reason == Reason::restored);
  CHECK(world.cores() == 4);
}
