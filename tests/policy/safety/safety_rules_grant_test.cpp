// What the budget of the host grants: more than the original by consent, and a memory.max for a
// container without one.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/policy/safety/safety_world.h"

using namespace cgphase;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

// 4 cores and 8 GiB of its own, in a phase that nothing lowers.
struct GrantWorld : SafetyWorld {
  explicit GrantWorld(Mode mode = Mode::enforce) {
    recommendation = {};
    input.mode = mode;
    input.terms.cpu_max = Cores{6};
    input.terms.memory_max = Bytes{12 * kGiB};
  }
  double hard() const {
    const auto& limit = sample.limits.memory_max;
    return limit && limit->bytes ? static_cast<double>(limit->bytes->value) / kGiB : -1;
  }
  void need(double gib) {
    sample.memory.anon_bytes = static_cast<std::uint64_t>(gib * static_cast<double>(kGiB));
  }
  std::vector<Decision> grants() const {
    std::vector<Decision> found;
    std::ranges::copy_if(all, std::back_inserter(found), [](const Decision& decision) {
      return decision.reason == Reason::budget || decision.reason == Reason::restored;
    });
    return found;
  }
};

}  // namespace

// rule: BUDGET-03
TEST_CASE("a granted quota and memory.max are in force after one tick, without phase or trial") {
  GrantWorld world;
  world.input.phase = SafetyWorld::unknown();
  world.ticks(3);
  CHECK(world.all.empty());
  world.input.grant = {.cpu_cores = 6, .memory_bytes = 12.0 * kGiB};
  world.tick();
  CHECK(world.cores() == doctest::Approx(6).epsilon(1e-4));
  CHECK(world.hard() == doctest::Approx(12).epsilon(1e-4));
  for (const Decision& decision : world.grants()) {
    CHECK(decision.reason == Reason::budget);
    CHECK(decision.direction == Direction::raise);
  }
  world.ticks(kLong);
  CHECK(world.grants().size() == 2);
  CHECK(world.outcomes.empty());
  CHECK(world.safety.blocked_by(Resource::cpu) == Verdict::granted);
  CHECK(world.safety.original().cpu_cores()->value == 4);
}

// rule: BUDGET-03
TEST_CASE("what is granted no longer comes back to the original after a minute, not before") {
  GrantWorld world;
  world.input.grant = {.cpu_cores = 6, .memory_bytes = 12.0 * kGiB};
  world.ticks(10);
  world.input.grant = {.cpu_cores = 4, .memory_bytes = 8.0 * kGiB};
  world.ticks(50);
  CHECK(world.cores() > 5.9);
  world.ticks(30);
  CHECK(world.cores() == 4);
  CHECK(world.hard() == 8);
  CHECK(world.sample.limits == world.original);
}

// rule: BUDGET-04
TEST_CASE("memory.max never comes back below what is needed") {
  GrantWorld world;
  world.input.grant.memory_bytes = 12.0 * kGiB;
  world.ticks(10);
  world.need(9);
  world.input.grant.memory_bytes = 8.0 * kGiB;
  world.ticks(200);
  CHECK(world.hard() > 9 * 1.15 - 0.01);
  CHECK(world.hard() < 11);
  world.need(3);
  world.ticks(200);
  CHECK(world.hard() == 8);
}

// rule: BUDGET-04
TEST_CASE("memory.max stays while a program runs that may have read it") {
  for (const bool emptied : {false, true}) {
    GrantWorld world;
    world.sample.pids_current = 3;
    world.input.grant.memory_bytes = 12.0 * kGiB;
    world.ticks(10);
    world.sample.programs.started = true;
    world.sample.pids_current = 40;
    world.tick();
    world.sample.programs.started = false;
    world.input.grant.memory_bytes = 8.0 * kGiB;
    world.ticks(300);
    CHECK(world.hard() > 11);
    world.sample.pids_current = 3;
    if (emptied) {
      world.sample.pids_current = 40;
      world.sample.populated = false;
      world.tick();
      world.sample.populated = true;
    }
    world.ticks(200);
    CHECK(world.hard() == 8);
  }
}

// rule: BUDGET-03
TEST_CASE("what the owner agrees to no more comes down at once, and page cache in steps") {
  GrantWorld world;
  world.input.grant.memory_bytes = 12.0 * kGiB;
  world.ticks(40);
  world.sample.memory_current = Bytes{11 * kGiB};
  world.sample.memory.inactive_file_bytes = 4 * kGiB;
  world.sample.memory.active_file_bytes = 6 * kGiB;
  world.input.grant.memory_bytes = 8.0 * kGiB;
  world.ticks(70);
  CHECK(world.hard() == doctest::Approx(9).epsilon(0.01));
  world.input.grant.memory_bytes = 12.0 * kGiB;
  world.tick();
  CHECK(world.hard() > 11);
  world.input.terms.memory_max = Bytes{10 * kGiB};
  world.input.grant.memory_bytes = 10.0 * kGiB;
  world.ticks(2);
  CHECK(world.hard() == doctest::Approx(10).epsilon(0.001));
}

// rule: S-05
TEST_CASE("a raise of memory.high comes before a grant") {
  GrantWorld world;
  world.recommendation.memory = Bytes{2 * kGiB};
  world.recommendation.memory_sample_count = 100;
  REQUIRE(world.lowers(Resource::memory, kLong));
  world.need(7.9);
  world.input.grant.memory_bytes = 12.0 * kGiB;
  const auto first = world.tick();
  REQUIRE(first.size() == 1);
  CHECK(first[0].reason == Reason::headroom);
  world.ticks(2);
  CHECK(world.hard() > 11);
}

// rule: BUDGET-03
TEST_CASE("whatever ends the management puts the originals back at once") {
  const auto ends = {+[](GrantWorld& world) { world.input.mode = Mode::observe; },
                     +[](GrantWorld& world) { world.input.hands_off = true; },
                     +[](GrantWorld& world) { world.input.grant = {}; }};
  for (const auto end : ends) {
    GrantWorld world;
    world.input.grant = {.cpu_cores = 6, .memory_bytes = 12.0 * kGiB};
    world.ticks(40);
    end(world);
    world.ticks(3);
    CHECK(world.sample.limits == world.original);
    world.ticks(3);
    CHECK(world.grants().size() == 4);
  }
}

// rule: S-08
TEST_CASE("a value that somebody else sets replaces what was granted and stays") {
  GrantWorld world;
  world.input.grant = {.cpu_cores = 6, .memory_bytes = 12.0 * kGiB};
  world.ticks(10);
  world.sample.limits.memory_max = MemoryLimit{Bytes{10 * kGiB}};
  world.sample.limits.cpu_max = CpuMax{Microseconds{500'000}, Microseconds{100'000}};
  world.ticks(100);
  CHECK(world.hard() == 10);
  CHECK(world.cores() == 5);
  CHECK(world.safety.original().cpu_cores()->value == 5);
}

// rule: BUDGET-05
TEST_CASE("the guard of a container without a limit is set after a minute, above its need") {
  GrantWorld world;
  world.sample.limits.memory_max = MemoryLimit{};
  world.original = world.sample.limits;
  world.need(2);
  world.input.grant.memory_bytes = 1.0 * kGiB;
  world.ticks(50);
  CHECK(world.hard() == -1);
  world.ticks(30);
  CHECK(world.hard() > 2 * 1.15);
  world.input.grant.memory_bytes = 20.0 * kGiB;
  world.tick();
  CHECK(world.hard() == doctest::Approx(20).epsilon(1e-4));
  world.input.mode = Mode::observe;
  world.ticks(2);
  CHECK(world.hard() == -1);
}

TEST_CASE("in advise mode a grant is reported once and not written") {
  GrantWorld world(Mode::advise);
  world.input.grant.cpu_cores = 6;
  world.ticks(kLong);
  REQUIRE(world.grants().size() == 1);
  CHECK(world.grants()[0].verdict == Verdict::advise_mode);
  CHECK(world.cores() == 4);
}

TEST_CASE("a grant whose write fails is asked for again after a pause") {
  GrantWorld world;
  world.apply = false;
  world.input.grant.cpu_cores = 6;
  const auto first = world.tick();
  REQUIRE(first.size() == 1);
  world.safety.written(first[0], WriteEnd::failed, world.sample.limits, world.time);
  world.ticks(9);
  CHECK(world.all.size() == 1);
  world.ticks(3);
  CHECK(world.all.size() == 2);
}

// rule: BUDGET-03
TEST_CASE("a lowering that failed delays no raise") {
  GrantWorld world;
  world.input.grant.memory_bytes = 10.0 * kGiB;
  world.ticks(40);
  world.input.grant.memory_bytes = 8.0 * kGiB;
  world.apply = false;
  const auto lowering = world.find(Resource::memory, Direction::lower, 90);
  REQUIRE(lowering.has_value());
  world.safety.written(*lowering, WriteEnd::failed, world.sample.limits, world.time);
  world.apply = true;
  world.input.grant.memory_bytes = 12.0 * kGiB;
  world.tick();
  CHECK(world.hard() > 11);
}
