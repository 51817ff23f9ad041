// How far one step lowers a limit: steps, floors and headroom.
#include <doctest/doctest.h>

#include "policy/safety/limit_arithmetic.h"
#include "tests/policy/safety/safety_world.h"

using namespace cgphase;

// rule: CPU-02
TEST_CASE("CPU is lowered by at most two cores or a tenth, 30 s apart") {
  SafetyWorld world;
  world.input.host.cpu_cores = 64;
  world.sample.limits.cpu_max->quota = Microseconds{4'000'000};  // 40 cores
  world.original = world.sample.limits;
  REQUIRE(world.lowers(Resource::cpu, kLong));
  CHECK(world.cores() == doctest::Approx(36));
  const MonotonicTime first = world.time;
  REQUIRE(world.lowers(Resource::cpu, kLong));
  CHECK(world.time - first >= world.config.cpu_lower_window);
  CHECK(world.cores() == doctest::Approx(32.4));
}

// rule: CPU-07
TEST_CASE("a quota that three earlier runs prove is set at once, ten seconds after a raise") {
  const auto lowered = [](int runs, bool pinned) {
    SafetyWorld world;
    world.input.host.cpu_cores = 64;
    world.sample.limits.cpu_max->quota = Microseconds{4'000'000};  // 40 cores
    world.original = world.sample.limits;
    world.recommendation.earlier_runs = runs;
    world.recommendation.cpu_pinned = pinned;
    REQUIRE(world.lowers(Resource::cpu, kLong));
    return world;
  };
  CHECK(lowered(2, false).cores() == doctest::Approx(36));
  CHECK(lowered(3, true).cores() == doctest::Approx(36));  // a pin is not what the runs proved
  SafetyWorld world = lowered(3, false);
  CHECK(world.cores() == doctest::Approx(1).epsilon(0.01));
  world.recommendation.cpu = Cores{10};  // the next phase is near
  REQUIRE(world.find(Resource::cpu, Direction::raise, 1).has_value());
  const MonotonicTime raised = world.time;
  world.recommendation.cpu = Cores{1};
  REQUIRE(world.lowers(Resource::cpu, kLong));
  CHECK(world.time - raised == world.config.memory_lower_window);
  CHECK(world.cores() == doctest::Approx(1).epsilon(0.01));
}

// rule: CPU-01
TEST_CASE("CPU is never lowered below 10 ms per period, and the period stays") {
  SafetyWorld world;
  world.recommendation.cpu = Cores{0};
  world.cpu_cores = 0.001;
  world.ticks(400);
  CHECK(world.sample.limits.cpu_max->quota == Microseconds{10'001});
  CHECK(world.sample.limits.cpu_max->period == Microseconds{100'000});
}

// rule: CPU-01
TEST_CASE("the burst is lowered with the quota and never above it") {
  SafetyWorld world;
  REQUIRE(world.lowers(Resource::cpu, kLong));
  CHECK(world.sample.limits.cpu_max->quota == Microseconds{200'001});
  CHECK(world.sample.limits.cpu_max_burst == Microseconds{200'001});
}

// Foreign values are recognised only because they differ from ours.
// rule: S-03
TEST_CASE("no limit is lowered to a round value unless somebody asked for it") {
  for (double cores = 0; cores < 3.5; cores += 0.05) {
    SafetyWorld world;
    world.recommendation.cpu = Cores{cores};
    REQUIRE(world.lowers(Resource::cpu, kLong));
    CHECK(world.sample.limits.cpu_max->quota->value % 10 != 0);
  }
  for (std::uint64_t bytes = kGiB; bytes < 7 * kGiB; bytes += 256 * kMiB) {
    SafetyWorld world;
    world.recommendation.memory = Bytes{bytes};
    REQUIRE(world.lowers(Resource::memory, kLong));
    CHECK(world.memory_bytes() % kMiB != 0);
  }
  // Just below the original, the result is the original, not one microsecond above it.
  SafetyWorld world;
  const Limits& original = world.original;
  const double ceiling = *cpu_in_force(original, world.input.host);
  for (const double below : {1e-9, 1e-7, 1e-6})
    CHECK(with_cpu(original, original, world.input.host, ceiling - below).cpu_max ==
          original.cpu_max);
  SafetyWorld pinned;
  pinned.recommendation.cpu = Cores{2.5};
  pinned.recommendation.memory = Bytes{6 * kGiB};
  pinned.recommendation.cpu_pinned = pinned.recommendation.memory_pinned = true;
  pinned.ticks(kLong);
  CHECK(pinned.sample.limits.cpu_max->quota == Microseconds{250'000});
  CHECK(pinned.memory_bytes() == 6 * kGiB);
}

// rule: MEM-01
TEST_CASE("a first memory step is at most half of the limit, in whole pages") {
  SafetyWorld world;
  *world.sample.memory.anon_bytes = kGiB + 1;
  REQUIRE(world.find(Resource::memory, Direction::lower, 25).has_value());  // before a dwell
  CHECK(world.memory_bytes() == 4 * kGiB + kPageBytes);
  CHECK(world.sample.limits.memory_max == world.original.memory_max);
}

// rule: MEM-03
TEST_CASE("a memory step reaches the recommendation after a steady dwell, or with earlier runs") {
  SafetyWorld world;
  world.recommendation.memory_sample_count = 1;
  world.ticks(40);
  world.recommendation.memory_sample_count = 100;
  REQUIRE(world.find(Resource::memory, Direction::lower, 60).has_value());
  CHECK(world.memory_bytes() == 2 * kGiB + kPageBytes);
  SafetyWorld proven;
  proven.recommendation.earlier_runs = 3;
  REQUIRE(proven.find(Resource::memory, Direction::lower, 25).has_value());
  CHECK(proven.memory_bytes() == 2 * kGiB + kPageBytes);
}

TEST_CASE("one memory step leaves half of the cold cache unreclaimed") {
  const SafetyConfig config;
  MemoryState state;
  state.long_step = true;
  state.need_bytes = 1.0 * kGiB;
  state.limit_bytes = 8.0 * kGiB;
  state.current_bytes = 7.0 * kGiB;
  CHECK(lowered_memory(config, {}, state, 0) == doctest::Approx(7.4 * kGiB));
  state.cold_cache_bytes = 4.0 * kGiB;
  CHECK(lowered_memory(config, {}, state, 0) == doctest::Approx(5.4 * kGiB));
}

// rule: MEM-03
TEST_CASE("the memory floor is the largest of its three terms") {
  const SafetyConfig config;
  MemoryState state;
  state.limit_bytes = 2.0 * kGiB;
  state.need_bytes = 1.0 * kGiB;
  CHECK(memory_floor(config, {}, state) == 1.25 * kGiB);  // 256 MiB
  state.peak_bytes = 1.5 * kGiB;
  CHECK(memory_floor(config, {}, state) == doctest::Approx(1.15 * 1.5 * kGiB));
  state.bytes_per_sec = 0.5 * kGiB;  // x 4 x 0.5 s
  CHECK(memory_floor(config, {}, state) == 2.0 * kGiB);
}

// rule: S-09
TEST_CASE("beside a program that kills on memory pressure the margins are doubled") {
  const SafetyConfig config;
  MemoryState state;
  state.margin_factor = config.killed_margin_factor;
  state.limit_bytes = 2.0 * kGiB;
  state.need_bytes = 1.0 * kGiB;
  CHECK(memory_floor(config, {}, state) == 1.5 * kGiB);  // 2 x 256 MiB
  state.peak_bytes = 1.5 * kGiB;
  CHECK(memory_floor(config, {}, state) == doctest::Approx(1.3 * 1.5 * kGiB));
  SafetyWorld plain, beside;
  for (SafetyWorld* world : {&plain, &beside}) {
    world->recommendation.cpu.reset();
    world->recommendation.memory = Bytes{0};
    world->sample.limits.memory_max = MemoryLimit{Bytes{2 * kGiB}};
    world->original = world->sample.limits;
  }
  beside.input.larger_margin = true;
  plain.ticks(1200);
  beside.ticks(1200);
  CHECK(plain.memory_bytes() < 1.3 * kGiB);
  CHECK(beside.memory_bytes() >= 1.5 * kGiB);
}

// rule: MEM-03
TEST_CASE("headroom is a quarter of a limit below 1 GiB and a tenth of a large one") {
  const SafetyConfig config;
  CHECK(memory_headroom(config, 400.0 * kMiB, 0) == 100.0 * kMiB);
  CHECK(memory_headroom(config, 1.0 * kGiB, 0) == 256.0 * kMiB);
  CHECK(memory_headroom(config, 100.0 * kGiB, 0) == 10.0 * kGiB);
}

// rule: MEM-01
TEST_CASE("memory.high is never lowered below memory.low or memory.min") {
  const SafetyConfig config;
  MemoryState state;
  state.limit_bytes = 8.0 * kGiB;
  for (auto knob : {&Limits::memory_low, &Limits::memory_min}) {
    Limits limits;
    limits.*knob = MemoryLimit{Bytes{7 * kGiB}};
    CHECK(memory_floor(config, limits, state) == 7.0 * kGiB);
    limits.*knob = MemoryLimit{};  // max
    CHECK(memory_floor(config, limits, state) == 0.8 * kGiB);
  }
}
