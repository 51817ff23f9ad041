// Raises that the kernel refuses, and limits lowered by an earlier daemon.
#include <doctest/doctest.h>

#include "tests/policy/safety/safety_world.h"

using namespace cgphase;

namespace {

// A world with a lowered quota. The kernel has refused its raise to the original this many times,
// and no new raise is requested.
SafetyWorld refused_world(int times) {
  SafetyWorld world;
  world.recommendation.memory.reset();
  world.recommendation.cpu = Cores{2};
  REQUIRE(world.lowers(Resource::cpu, kLong));
  world.ticks(40);
  REQUIRE(world.cores() == doctest::Approx(2));
  world.apply = false;
  world.recommendation.cpu = Cores{4};
  for (int refused = 0; refused < times; ++refused) {
    const auto raise = world.find(Resource::cpu, Direction::raise, 10);
    REQUIRE(raise.has_value());
    world.safety.written(*raise, WriteEnd::failed, world.sample.limits, world.time);
  }
  world.recommendation.cpu = Cores{2};
  return world;
}

}  // namespace

TEST_CASE("a failed revert of a trial is requested until the original is in force") {
  for (const bool answered : {true, false}) {
    CAPTURE(answered);
    SafetyWorld world;
    world.recommendation.cpu.reset();
    REQUIRE(world.lowers(Resource::memory, kLong));
    world.apply = false;
    world.refaults = 11;  // instead of none
    const auto raise = world.find(Resource::memory, Direction::raise, 40);
    REQUIRE(raise.has_value());
    REQUIRE(raise->reason == Reason::trial_failed);
    if (answered)
      world.safety.written(*raise, WriteEnd::failed, world.sample.limits, world.time);
    world.refaults = 0;
    world.recommendation.memory.reset();  // nothing else requests a raise
    world.apply = true;
    world.ticks(answered ? 2 : 15);
    CHECK(world.memory_bytes() == 8 * kGiB);
    CHECK(world.all.back().reason == Reason::trial_failed);
    const std::size_t count = world.all.size();
    world.ticks(5);
    CHECK(world.all.size() == count);
  }
}

TEST_CASE("a limit of ours that the writer rounded up to pages of 64 KiB counts as ours") {
  constexpr std::uint64_t kPage = std::uint64_t{64} << 10;
  SafetyWorld world;
  world.input.host.page = Bytes{kPage};
  world.recommendation.cpu.reset();
  world.recommendation.memory = Bytes{2 * kGiB + kPageBytes};
  world.recommendation.earlier_runs = 3;  // the step reaches the recommendation
  world.apply = false;
  const auto lowering = world.find(Resource::memory, Direction::lower, kLong);
  REQUIRE(lowering.has_value());
  const std::uint64_t asked = lowering->new_limits.memory_bytes()->value;
  REQUIRE(asked % kPage != 0);
  const Bytes rounded{(asked + kPage - 1) / kPage * kPage};
  world.sample.limits.memory_high = MemoryLimit{rounded};
  world.safety.written(*lowering, WriteEnd::done, world.sample.limits, world.time);
  for (int i = 0; i < 5; ++i) {
    world.tick();
    CHECK(world.safety.original().memory_high == world.original.memory_high);
    CHECK(world.safety.blocked_by(Resource::memory) != Verdict::standing_down);
  }
  CHECK(world.outcomes.empty());
  world.sample.limits.memory_high = MemoryLimit{Bytes{rounded.value + kPage}};
  world.ticks(2);
  CHECK(world.safety.original().memory_high == world.sample.limits.memory_high);
}

TEST_CASE("a limit one page above ours is foreign") {
  SafetyWorld world;
  world.recommendation.cpu.reset();
  REQUIRE(world.lowers(Resource::memory, kLong));
  world.ticks(20);
  world.sample.limits.memory_high = MemoryLimit{Bytes{world.memory_bytes() + kPageBytes}};
  world.tick();
  CHECK(world.safety.original().memory_high == world.sample.limits.memory_high);
  CHECK(world.safety.blocked_by(Resource::memory) == Verdict::standing_down);
}

TEST_CASE("a limit lowered by an earlier daemon is restored in every mode") {
  for (const Mode mode : {Mode::observe, Mode::advise, Mode::enforce}) {
    SafetyWorld world;
    world.input.mode = mode;
    world.sample.limits.memory_high = MemoryLimit{Bytes{2 * kGiB}};
    world.apply = false;
    const auto raise = world.find(Resource::memory, Direction::raise, 1);
    REQUIRE(raise.has_value());
    CHECK(raise->reason == Reason::restored);
    CHECK(raise->new_limits.memory_high == world.original.memory_high);
    world.apply = true;
    world.safety.written(*raise, WriteEnd::failed, world.sample.limits, world.time);
    world.ticks(2);
    CHECK(world.memory_bytes() == 8 * kGiB);
    CHECK(world.cores() == 4);
    CHECK(world.safety.blocked_by(Resource::memory) != Verdict::standing_down);
  }
}

TEST_CASE("a refused raise is repeated, at intervals of up to ten seconds") {
  SafetyWorld world;
  world.recommendation.cpu.reset();
  REQUIRE(world.lowers(Resource::memory, kLong));
  world.input.mode = Mode::observe;
  world.apply = false;
  const auto asked_in = [&](int count) {
    int asked = 0;
    for (int i = 0; i < count; ++i)
      for (const Decision& decision : world.tick()) {
        REQUIRE(decision.direction == Direction::raise);
        world.safety.written(decision, WriteEnd::failed, world.sample.limits, world.time);
        ++asked;
      }
    return asked;
  };
  CHECK(asked_in(3) >= 2);
  asked_in(15);
  CHECK(asked_in(100) == 10);
  world.apply = true;
  world.ticks(10);
  CHECK(world.memory_bytes() == 8 * kGiB);
}

TEST_CASE("a raise above the refused one is requested at once") {
  SafetyWorld world;
  world.recommendation.memory.reset();
  REQUIRE(world.lowers(Resource::cpu, kLong));
  world.apply = false;
  world.recommendation.cpu = Cores{world.cores() * 1.5};
  const auto refused = world.find(Resource::cpu, Direction::raise, 5);
  REQUIRE(refused.has_value());
  world.safety.written(*refused, WriteEnd::failed, world.sample.limits, world.time);
  const auto again = world.find(Resource::cpu, Direction::raise, 5);
  REQUIRE(again.has_value());
  world.safety.written(*again, WriteEnd::failed, world.sample.limits, world.time);
  CHECK(world.tick().empty());
  world.recommendation.cpu = Cores{4};
  CHECK(world.find(Resource::cpu, Direction::raise, 1).has_value());
}

TEST_CASE("throttling during the wait after a refused raise is answered after the wait") {
  SafetyWorld world = refused_world(3);  // the next in four seconds
  world.throttled_periods = 3;
  CHECK_FALSE(world.find(Resource::cpu, Direction::raise, 1).has_value());
  world.throttled_periods = 0;
  CHECK_FALSE(world.find(Resource::cpu, Direction::raise, 2).has_value());
  const auto raise = world.find(Resource::cpu, Direction::raise, 1);
  REQUIRE(raise.has_value());
  CHECK(raise->reason == Reason::throttled);
  // It is the first raise: the postponed one counts once.
  CHECK(raise->new_limits.cpu_cores()->value == doctest::Approx(2.4));
}

TEST_CASE("throttling that ends before a raise is possible still counts as time waited") {
  SafetyWorld world = refused_world(4);  // the next in eight seconds
  world.throttled_periods = 3;
  world.throttled_usec = 1'000'000;
  world.tick();
  world.throttled_periods = world.throttled_usec = 0;
  CHECK_FALSE(world.find(Resource::cpu, Direction::raise, 20).has_value());
  world.recommendation.cpu = Cores{1};
  CHECK_FALSE(world.lowers(Resource::cpu, 100));
  CHECK(world.lowers(Resource::cpu, 400));
}

// rule: CPU-06
TEST_CASE("after throttling a quota is lowered again once tasks waited 1 % of what they used") {
  for (const int more : {0, 1}) {
    SafetyWorld world;
    world.cpu_cores = 1;
    world.recommendation.cpu = Cores{1.5};
    REQUIRE(world.lowers(Resource::cpu, kLong));
    world.ticks(60);
    world.throttled_usec = more == 0 ? 100'000 : 3'000'000;
    world.throttled_periods = 3;
    world.tick();
    world.throttled_usec = world.throttled_periods = 0;
    world.tick();
    CHECK(world.safety.blocked_by(Resource::cpu) != Verdict::allowed);
    CHECK(world.lowers(Resource::cpu, 120) == (more == 0));
  }
}
