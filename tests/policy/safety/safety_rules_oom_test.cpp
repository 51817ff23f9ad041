// The safety rules and the memory floors after OOMs under their limits.
#include <doctest/doctest.h>

#include <algorithm>

#include "policy/safety/oom_memory.h"
#include "tests/policy/safety/safety_world.h"

using namespace cgphase;
using std::chrono::seconds;

namespace {

constexpr double kGibiOfOom = kGiB;

SafetyWorld lowered_for_oom(const SafetyConfig& config = {}) {
  SafetyWorld world(config);
  REQUIRE(world.lowers(Resource::memory, kLong));
  world.ticks(40);
  return world;
}

WallTime wall(const SafetyWorld& world) {
  return WallTime(std::chrono::hours(1'000'000) / 2 + world.time.time_since_epoch());
}

// Runs until memory is as low as the rules allow.
void settle(SafetyWorld& world) {
  for (std::uint64_t before = 0; before != world.memory_bytes();) {
    before = world.memory_bytes();
    world.ticks(200);
  }
}

}  // namespace

TEST_CASE("an OOM at memory.max reports once that need reached it") {
  auto world = lowered_for_oom();
  *world.sample.memory_events.oom += 1;
  *world.sample.memory_events.oom_kill += 1;
  world.tick();
  const auto oom = world.safety.take_oom();
  REQUIRE(oom.has_value());
  CHECK(oom->limit_bytes == 8 * kGibiOfOom);
  CHECK(oom->measured_bytes == kGibiOfOom);
  CHECK_FALSE(world.safety.take_oom().has_value());
}

TEST_CASE("a kill below our limit reports the highest need of the last minute") {
  auto world = lowered_for_oom();
  world.sample.memory.anon_bytes = kGiB + 64 * kMiB;
  world.tick();
  world.sample.memory.anon_bytes = kGiB;
  world.tick();
  *world.sample.memory_events.oom_kill += 1;
  world.tick();
  const auto oom = world.safety.take_oom();
  REQUIRE(oom.has_value());
  CHECK(oom->limit_bytes == 0);
  CHECK(oom->measured_bytes == kGibiOfOom + 64 * kMiB);
}

TEST_CASE("a child cgroup that reaches its own limit causes no event of ours") {
  SafetyWorld world;
  world.sample.own_limit_events = {0, 0};
  REQUIRE(world.lowers(Resource::memory, kLong));
  world.ticks(40);
  const std::uint64_t limit = world.memory_bytes();
  MemoryEvents& all = world.sample.memory_events;
  OwnLimitEvents& own = world.sample.own_limit_events;
  const auto restored = [&] {
    world.tick();
    return world.memory_bytes() == 8 * kGiB;
  };
  SUBCASE("its processes are killed at its own limit") {
    for (int i = 0; i < 3; ++i) {
      *all.max += 2, *all.oom += 1, *all.oom_kill += 1;
      CHECK_FALSE(restored());
    }
    CHECK(world.memory_bytes() == limit);
    CHECK_FALSE(world.safety.take_oom().has_value());
    CHECK(world.safety.blocked_by(Resource::memory) != Verdict::quarantined);
    CHECK(world.safety.blocked_by(Resource::memory) != Verdict::cool_down);
  }
  SUBCASE("its processes are killed at our limit, and the kills are counted in the child") {
    *all.max += 1, *all.oom += 1, *all.oom_kill += 1, *own.max += 1, *own.oom += 1;
    CHECK(restored());
    CHECK(world.safety.take_oom()->limit_bytes == 8 * kGibiOfOom);
  }
  SUBCASE("both limits are reached within one sample") {
    *all.max += 2, *all.oom += 2, *all.oom_kill += 2, *own.max += 1, *own.oom += 1;
    CHECK(restored());
  }
  SUBCASE("page cache reached our limit") {
    *all.max += 1, *own.max += 1;
    CHECK(restored());
  }
  SUBCASE("it is killed because the whole host is short of memory") {
    *all.oom_kill += 1;
    CHECK(restored());
    CHECK(world.safety.take_oom()->limit_bytes == 0);
  }
  SUBCASE("a kernel that does not distinguish the two, also for a single sample") {
    *all.max += 1, *all.oom += 1, *all.oom_kill += 1;
    own = {};
    CHECK(restored());
    REQUIRE(world.safety.take_oom().has_value());
    own = {1, 1};  // a reported event is not reported again
    world.tick();
    CHECK_FALSE(world.safety.take_oom().has_value());
  }
  SUBCASE("the kernel starts to report them") {
    own = {};
    world.tick();
    *all.oom += 1, *all.oom_kill += 1;
    own = {0, 1};
    CHECK(restored());
  }
}

TEST_CASE("an OOM under the original limit leaves no floor") {
  SafetyWorld world;
  world.ticks(5);
  *world.sample.memory_events.oom += 1;
  world.ticks(2);
  CHECK_FALSE(world.safety.take_oom().has_value());
}

TEST_CASE("a container that ends right after an event of the fast path had an OOM") {
  auto world = lowered_for_oom();
  Decision decision;
  decision.decision_id = 1'000'000;
  decision.resource = Resource::memory;
  decision.direction = Direction::raise;
  decision.reason = Reason::memory_event;
  decision.old_limits = decision.new_limits = world.sample.limits;
  decision.new_limits.memory_high = world.original.memory_high;
  SUBCASE("it ends before the next step") {
    world.write(decision);
    world.safety.vanished(world.time);
    const auto oom = world.safety.take_oom();
    REQUIRE(oom.has_value());
    CHECK(oom->measured_bytes == kGibiOfOom);
    CHECK(oom->limit_bytes == 8 * kGibiOfOom);
  }
  SUBCASE("it exists at the next step and ends later") {
    world.write(decision);
    world.tick();
    world.safety.vanished(world.time);
    CHECK_FALSE(world.safety.take_oom().has_value());
  }
  SUBCASE("raised for another reason") {
    decision.reason = Reason::headroom;
    world.write(decision);
    world.safety.vanished(world.time);
    CHECK_FALSE(world.safety.take_oom().has_value());
  }
}

TEST_CASE("memory is lowered to the floor of an OOM, not below, and the verdict says so") {
  SafetyWorld world;
  world.input.oom_floor_bytes = 5 * kGibiOfOom;
  settle(world);
  CHECK(world.memory_bytes() >= 5 * kGiB);
  CHECK(world.memory_bytes() < 5 * kGiB + 5 * kGiB / 19);  // 5 % of it are not worth a write
  CHECK(world.safety.blocked_by(Resource::memory) == Verdict::oom_remembered);
  const auto refused = std::find_if(world.all.rbegin(), world.all.rend(), [](const auto& one) {
    return one.verdict == Verdict::oom_remembered;
  });
  REQUIRE(refused != world.all.rend());
  CHECK(refused->new_limits.memory_bytes()->value < 5 * kGiB);
  CHECK(refused->statistic == 2 * kGibiOfOom);  // the recommendation is unchanged
  world.input.oom_floor_bytes = 0;
  settle(world);
  CHECK(world.memory_bytes() < 3 * kGiB);
}

TEST_CASE("an OOM floor above the original limit blocks every lowering") {
  SafetyWorld world;
  world.input.oom_floor_bytes = 9 * kGibiOfOom;
  settle(world);
  CHECK(world.memory_bytes() == 8 * kGiB);
  CHECK(world.safety.blocked_by(Resource::memory) == Verdict::oom_remembered);
  CHECK(world.cores() < 4);
}

TEST_CASE("a lowered limit is raised to a new OOM floor of the image, not above it") {
  SafetyWorld world;
  settle(world);
  REQUIRE(world.memory_bytes() < 3 * kGiB);
  world.input.oom_floor_bytes = 4 * kGibiOfOom;
  const auto raise = world.find(Resource::memory, Direction::raise, 1);
  REQUIRE(raise.has_value());
  CHECK(raise->reason == Reason::oom_remembered);
  CHECK(world.memory_bytes() == 4 * kGiB + kPageBytes);
  world.input.oom_floor_bytes = 20 * kGibiOfOom;
  CHECK(world.find(Resource::memory, Direction::raise, 1).has_value());
  CHECK(world.memory_bytes() == 8 * kGiB);
}

// rule: MEM-04
TEST_CASE("ten OOMs with the same need give the same floor") {
  SafetyWorld world;
  OomMemory memory;
  double first = 0;
  for (int oom = 1; oom <= 10; ++oom) {
    for (std::uint64_t before = 0; before != world.memory_bytes();) {
      before = world.memory_bytes();
      for (int i = 0; i < 200; ++i) {
        world.input.oom_floor_bytes = memory.floor_bytes("img", wall(world));
        world.tick();
      }
    }
    REQUIRE(world.memory_bytes() < 8 * kGiB);
    *world.sample.memory_events.oom_kill += 1;
    world.tick();
    const auto seen = world.safety.take_oom();
    REQUIRE(seen.has_value());
    memory.remember("img", *seen, wall(world));
    const double floor = memory.floor_bytes("img", wall(world));
    if (oom == 1) first = floor;
    CAPTURE(oom);
    CHECK(floor == doctest::Approx(first));
    world.time += std::chrono::hours(24);
  }
}
