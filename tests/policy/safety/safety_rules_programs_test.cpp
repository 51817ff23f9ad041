// Programs that start or reread limits, and originals that others restore.
#include <doctest/doctest.h>

#include <algorithm>

#include "policy/safety/limit_arithmetic.h"
#include "tests/policy/safety/safety_world.h"

using namespace cgphase;

// rule: MEM-07
TEST_CASE("the limits stay at the originals for twenty seconds after a program starts") {
  auto world = lowered_world();
  world.sample.programs.started = true;
  const auto decisions = world.tick();
  world.sample.programs.started = false;
  REQUIRE(decisions.size() == 2);
  for (const Decision& decision : decisions) {
    CHECK(decision.direction == Direction::raise);
    CHECK(decision.reason == Reason::program_started);
  }
  CHECK(world.sample.limits == world.original);
  CHECK_FALSE(world.lowers(Resource::memory, 19));
  CHECK(world.lowers(Resource::memory, 1));
}

TEST_CASE("a lowering is reverted if a program starts during it") {
  SafetyWorld world;
  world.apply = false;
  const auto lowering = world.find(Resource::memory, Direction::lower, kLong);
  REQUIRE(lowering.has_value());
  world.sample.programs.started = true;
  world.tick();
  world.sample.programs.started = false;
  world.write(*lowering);
  world.apply = true;
  const auto raise = world.find(Resource::memory, Direction::raise, 1);
  REQUIRE(raise.has_value());
  CHECK(raise->reason == Reason::program_started);
}

// rule: MEM-07
TEST_CASE("a limit that programs reread is restored and stays, and the other one is lowered") {
  for (const Resource read : {Resource::cpu, Resource::memory}) {
    const Resource other = read == Resource::cpu ? Resource::memory : Resource::cpu;
    auto world = lowered_world();
    (read == Resource::cpu ? world.sample.programs.reads_cpu
                           : world.sample.programs.reads_memory) = true;
    const auto raise = world.find(read, Direction::raise, 1);
    REQUIRE(raise.has_value());
    CHECK(raise->reason == Reason::reads_limits);
    CHECK_FALSE(world.lowers(read, 10 * kLong));
    CHECK(world.safety.blocked_by(read) == Verdict::reads_limits);
    CHECK(world.safety.blocked_by(other) != Verdict::reads_limits);
    CHECK(is_original(world.sample.limits, world.original, read));
    CHECK_FALSE(is_original(world.sample.limits, world.original, other));
  }
}

TEST_CASE("a restore by the fast path for a started program lasts twenty seconds") {
  auto world = lowered_world();
  Decision raise{.resource = Resource::memory};
  raise.direction = Direction::raise;
  raise.reason = Reason::program_started;
  raise.new_limits = world.original;
  world.write(raise);
  CHECK_FALSE(world.lowers(Resource::memory, 19));
  CHECK(world.safety.blocked_by(Resource::memory) == Verdict::stale_data);
  CHECK(world.lowers(Resource::memory, 2));
}

TEST_CASE("originals that return just before a foreign limit are not a reset") {
  for (const bool somebody : {false, true}) {
    auto world = lowered_world();
    world.recommendation.memory = Bytes{2 * kGiB};
    const std::size_t before = world.all.size();
    world.input.reload = world.time;
    world.sample.limits = world.original;
    world.tick();
    if (somebody) world.sample.limits.memory_max = MemoryLimit{Bytes{6 * kGiB}};
    world.ticks(2);
    const auto reported = [&](Verdict verdict) {
      return std::any_of(world.all.begin() + static_cast<std::ptrdiff_t>(before), world.all.end(),
                         [=](const Decision& one) { return one.verdict == verdict; });
    };
    CHECK(reported(Verdict::silently_reverted) == !somebody);
    CHECK(reported(Verdict::standing_down) == somebody);
  }
}

TEST_CASE("a lowering voided by a program start is reported as such and is not a reset") {
  auto world = lowered_world();  // the limit in force before it is restored, too
  world.apply = false;
  world.recommendation.cpu = Cores{1};
  const auto lowering = world.find(Resource::cpu, Direction::lower, kLong);
  REQUIRE(lowering.has_value());
  world.sample.limits.cpu_max = world.original.cpu_max;
  world.safety.written(*lowering, WriteEnd::program_started, world.sample.limits, world.time);
  const std::size_t before = world.all.size();
  world.ticks(19);
  CHECK(world.safety.blocked_by(Resource::cpu) == Verdict::stale_data);
  CHECK(std::none_of(world.all.begin() + static_cast<std::ptrdiff_t>(before), world.all.end(),
                     [](const Decision& one) {
                       return one.verdict == Verdict::silently_reverted ||
                              one.verdict == Verdict::standing_down;
                     }));
  world.apply = true;
  CHECK(world.lowers(Resource::cpu, 60));
  CHECK(std::any_of(world.outcomes.begin(), world.outcomes.end(), [&](const Outcome& one) {
    return one.decision_id == lowering->decision_id && one.kind == OutcomeKind::overtaken;
  }));
}
