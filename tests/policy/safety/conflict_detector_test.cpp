// A conflicting writer that only its changes reveal.
#include "policy/safety/conflict_detector.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "tests/policy/safety/safety_world.h"

using namespace cgphase;
using std::chrono::hours;
using std::chrono::seconds;

namespace {

MonotonicTime at(std::chrono::nanoseconds time) { return MonotonicTime{} + time; }

// Lowers, and then runs `answer` as somebody else's reaction.
bool contest(SafetyWorld& world, const std::function<void(SafetyWorld&)>& answer) {
  if (!world.lowers(Resource::memory, 1200)) return false;
  world.ticks(15);  // longer than safety.silent_revert
  answer(world);
  world.ticks(2);
  return true;
}

// A manager that sets 6 GiB or 7 GiB, never the same value twice in a row.
void set_another(SafetyWorld& world) {
  const auto gib = world.safety.original().memory_bytes()->value / kGiB;
  world.sample.limits.memory_max = MemoryLimit{Bytes{(gib == 6 ? 7 : 6) * kGiB}};
}

bool left_alone(const SafetyWorld& world) {
  return world.safety.blocked_by(Resource::cpu) == Verdict::rival &&
         world.safety.blocked_by(Resource::memory) == Verdict::rival;
}

SafetyWorld world_for_rivals() {
  SafetyWorld world;
  world.recommendation.cpu = Cores{2};
  world.recommendation.memory = Bytes{2 * kGiB};
  return world;
}

// The container has been left alone since the last tick.
SafetyWorld rivalled_world() {
  SafetyWorld world = world_for_rivals();
  for (int i = 0; i < 3; ++i) REQUIRE(contest(world, set_another));
  REQUIRE(left_alone(world));
  return world;
}

}  // namespace

TEST_CASE("the third change within six hours is by a conflicting writer, the second is not") {
  const SafetyConfig config;
  ConflictDetector rival{config};
  for (const int hour : {1, 2}) {
    rival.lowered();
    rival.changed(at(hours(hour)));
    CHECK_FALSE(rival.blocked_by(at(hours(hour))));
  }
  rival.lowered();
  rival.changed(at(hours(7) - seconds(1)));
  CHECK(rival.blocked_by(at(hours(7) - seconds(1))));
}

TEST_CASE("three changes in more than six hours are not by a conflicting writer") {
  const SafetyConfig config;
  ConflictDetector rival{config};
  for (const int hour : {1, 2, 7, 13, 19}) {
    rival.lowered();
    rival.changed(at(hours(hour)));
    CHECK_FALSE(rival.blocked_by(at(hours(hour))));
  }
}

TEST_CASE("changes count once per lowering, and none before the first") {
  const SafetyConfig config;
  ConflictDetector rival{config};
  for (int minute = 0; minute < 10; ++minute) rival.changed(at(std::chrono::minutes(minute)));
  for (const int hour : {1, 2}) {
    rival.lowered();
    for (int second = 0; second < 10; ++second) rival.changed(at(hours(hour) + seconds(second)));
  }
  CHECK_FALSE(rival.blocked_by(at(hours(3))));
  rival.lowered();
  rival.changed(at(hours(3)));
  CHECK(rival.blocked_by(at(hours(3))));
}

TEST_CASE("a conflicting writer blocks for a day, then one change is enough") {
  const SafetyConfig config;
  ConflictDetector rival{config};
  for (const int hour : {1, 2, 3}) {
    rival.lowered();
    rival.changed(at(hours(hour)));
  }
  CHECK(rival.blocked_by(at(hours(27) - seconds(1))));
  CHECK_FALSE(rival.blocked_by(at(hours(27))));
  rival.changed(at(hours(28)));  // nothing was lowered meanwhile
  CHECK_FALSE(rival.blocked_by(at(hours(28))));
  rival.lowered();
  rival.changed(at(hours(40)));
  CHECK(rival.blocked_by(at(hours(64) - seconds(1))));
  CHECK_FALSE(rival.blocked_by(at(hours(64))));
}

TEST_CASE("a container is left alone after somebody changed it after each lowering") {
  SafetyWorld world = world_for_rivals();
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(left_alone(world));
    REQUIRE(contest(world, set_another));
  }
  CHECK(left_alone(world));
  const MonotonicTime since = world.time - seconds(1);  // the tick in which it was detected
  world.ticks(20 * 60);  // longer than safety.stand_down
  CHECK(left_alone(world));
  world.time = since + hours(24) - seconds(2);
  CHECK_FALSE(world.lowers(Resource::memory, 1));
  CHECK(world.lowers(Resource::memory, kLong));
}

// rule: S-08
TEST_CASE("a conflicting writer's limits stay, and all other lowered limits are restored") {
  SafetyWorld world = world_for_rivals();
  for (int i = 0; i < 2; ++i) REQUIRE(contest(world, set_another));
  REQUIRE(world.lowers(Resource::memory, 1200));
  world.ticks(100);
  REQUIRE(world.cores() < 4);
  set_another(world);
  const auto set = world.sample.limits.memory_max;
  world.tick();
  CHECK(world.cores() == 4);
  CHECK(std::ranges::any_of(world.all, [&](const Decision& decision) {
    return decision.time == world.time && decision.resource == Resource::cpu &&
           decision.reason == Reason::another_manager;
  }));
  world.tick();
  CHECK(left_alone(world));
  const std::size_t reported = world.all.size();
  world.recommendation.cpu = Cores{8};
  world.sample.memory.anon_bytes = set->bytes->value / 100 * 95;  // close to the foreign limit
  world.ticks(100);
  CHECK(world.sample.limits.memory_max == set);
  CHECK(std::all_of(world.all.begin() + static_cast<std::ptrdiff_t>(reported), world.all.end(),
                    [](const Decision& decision) { return decision.verdict == Verdict::rival; }));
}

TEST_CASE("a conflicting writer is journaled once") {
  SafetyWorld world = rivalled_world();
  world.ticks(100);
  for (const Resource resource : {Resource::cpu, Resource::memory})
    CHECK(std::ranges::count_if(world.all, [&](const Decision& decision) {
            return decision.verdict == Verdict::rival && decision.resource == resource;
          }) == 1);
}

TEST_CASE("two changes by a person are not a conflict") {
  SafetyWorld world = world_for_rivals();
  for (int i = 0; i < 2; ++i) REQUIRE(contest(world, set_another));
  CHECK(world.safety.blocked_by(Resource::memory) == Verdict::standing_down);
  CHECK(world.lowers(Resource::memory, 1200));
}

TEST_CASE("restoring the original is a conflict even within seconds, but a reload is not") {
  for (const bool reload : {false, true})
    for (const int after : {1, 20}) {
      SafetyWorld world = world_for_rivals();
      for (int i = 0; i < 3; ++i) {
        REQUIRE(world.lowers(Resource::memory, 1200));
        world.ticks(after);
        if (reload) world.input.reload = world.time;
        world.sample.limits = world.original;
        world.ticks(2);
      }
      CHECK(left_alone(world) == !reload);
    }
}

TEST_CASE("changes while observing are not a conflict") {
  SafetyWorld world = world_for_rivals();
  for (int i = 0; i < 3; ++i) {
    REQUIRE(world.lowers(Resource::memory, 1200));
    world.ticks(15);
    world.input.mode = Mode::observe;
    world.ticks(3);
    set_another(world);
    world.ticks(3);
    world.input.mode = Mode::enforce;
    world.tick();
  }
  CHECK_FALSE(left_alone(world));
}

TEST_CASE("the original burst is restored at most to a quota that somebody else set") {
  SafetyWorld world;
  world.recommendation.memory.reset();
  world.recommendation.cpu = Cores{2};
  REQUIRE(world.lowers(Resource::cpu, kLong));
  world.ticks(40);
  REQUIRE(world.sample.limits.cpu_max_burst == Microseconds{200'001});
  world.sample.limits.cpu_max->quota = Microseconds{250'000};
  world.tick();
  world.input.mode = Mode::advise;
  world.ticks(2);
  CHECK(world.sample.limits.cpu_max->quota == Microseconds{250'000});
  CHECK(world.sample.limits.cpu_max_burst == Microseconds{250'000});
}
