// Each rule that a lowering must pass: with its cause nothing is lowered, without it something is.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "tests/policy/safety/rail_world.h"

using namespace cgphase;

namespace {


// Runs `cause` before each tick; true when it alone kept the resource from being lowered, and the
// rails said so.
bool holds(Resource resource, Verdict verdict, const std::function<void(RailWorld&)>& cause,
           const RailsConfig& config = {}) {
  RailWorld plain(config), world(config);
  for (RailWorld* one : {&plain, &world}) {  // the other resource would hold it by its own trials
    if (resource == Resource::cpu) one->wish.memory.reset();
    if (resource == Resource::memory) one->wish.cpu.reset();
  }
  if (!plain.lowers(resource, kLong)) return false;
  for (int i = 0; i < kLong; ++i) {
    cause(world);
    if (world.lowers(resource, 1)) return false;
  }
  return world.rails.holding(resource) == verdict;
}

bool holds_both(Verdict verdict, const std::function<void(RailWorld&)>& cause) {
  return holds(Resource::cpu, verdict, cause) && holds(Resource::memory, verdict, cause);
}

// Nothing but one more sample keeps its CPU from being lowered.
RailWorld almost_lowered() {
  RailWorld world;
  world.wish.cpu_sample_count = 1;
  world.wish.memory.reset();
  world.ticks(40);
  world.wish.cpu_sample_count = 100;
  return world;
}

int allowed_lowerings(const RailWorld& world, Resource resource) {
  return static_cast<int>(
      std::count_if(world.all.begin(), world.all.end(), [&](const Decision& decision) {
        return decision.verdict == Verdict::allowed && decision.resource == resource &&
               decision.direction == Direction::lower;
      }));
}

}  // namespace

// rule: S-01
TEST_CASE("mode observe lowers nothing and proposes nothing") {
  CHECK(holds_both(Verdict::observe_mode, [](RailWorld& w) { w.input.mode = Mode::observe; }));
  RailWorld world;
  world.input.mode = Mode::observe;
  world.ticks(kLong);
  CHECK(world.all.empty());
}

// rule: S-01
TEST_CASE("mode advise tells the decision that enforce would write") {
  RailWorld advised, enforced;
  advised.input.mode = Mode::advise;
  advised.ticks(kLong);
  const auto written = enforced.find(Resource::cpu, Direction::lower, kLong);
  REQUIRE(written.has_value());
  const auto told = std::find_if(advised.all.begin(), advised.all.end(), [](const Decision& d) {
    return d.resource == Resource::cpu && d.verdict == Verdict::advise_mode;
  });
  REQUIRE(told != advised.all.end());
  CHECK(told->new_limits == written->new_limits);
  CHECK(told->time == written->time);
  CHECK(advised.sample.limits == advised.original);
}

TEST_CASE("a refusal is told once, and again when the wish has moved") {
  RailWorld world;
  world.input.phase = RailWorld::unknown();
  world.ticks(kLong);
  const auto cpu = [&] {
    return std::count_if(world.all.begin(), world.all.end(), [](const Decision& d) {
      return d.resource == Resource::cpu && d.verdict == Verdict::phase_unknown;
    });
  };
  CHECK(cpu() == 1);
  world.wish.cpu = Cores{3};
  world.ticks(5);
  CHECK(cpu() == 2);
}

TEST_CASE("hands off means hands off") {
  CHECK(holds_both(Verdict::hands_off, [](RailWorld& w) { w.input.hands_off = true; }));
}

// rule: CPU-04
TEST_CASE("a container with a GPU keeps its CPU quota, and its memory comes down") {
  const auto gpu = [](RailWorld& w) { w.input.gpu = true; };
  CHECK(holds(Resource::cpu, Verdict::gpu_container, gpu));
  RailWorld world;
  gpu(world);
  world.ticks(kLong);
  CHECK(world.sample.limits.cpu_max == world.original.cpu_max);
  CHECK(world.sample.limits.cpu_max_burst == world.original.cpu_max_burst);
  CHECK(allowed_lowerings(world, Resource::memory) > 0);
  const auto told = std::count_if(world.all.begin(), world.all.end(), [](const Decision& d) {
    return d.verdict == Verdict::gpu_container;
  });
  CHECK(told == 1);
}

TEST_CASE("that a container has a GPU is told whatever its policy wants") {
  RailWorld world;
  world.input.gpu = true;
  world.wish.cpu.reset();
  world.tick();
  CHECK(world.rails.holding(Resource::cpu) == Verdict::gpu_container);
  CHECK(world.rails.holding(Resource::memory) != Verdict::gpu_container);
}

TEST_CASE("a quota comes down for the first time only after a fresh look for a GPU") {
  const auto looked = [](std::chrono::seconds ago) {  // as of the tick that follows
    return [ago](RailWorld& w) { w.input.gpu_ruled_out = w.time + w.interval - ago; };
  };
  const auto old = looked(kFreshGpuLook + std::chrono::seconds(1));
  CHECK(holds(Resource::cpu, Verdict::gpu_container, old));
  CHECK_FALSE(holds(Resource::cpu, Verdict::gpu_container, looked(kFreshGpuLook)));
  RailsConfig any;
  any.lower_gpu_quota = true;
  CHECK_FALSE(holds(Resource::cpu, Verdict::gpu_container, old, any));
  RailWorld world;
  world.wish.memory.reset();
  world.input.gpu_ruled_out = world.time;
  for (int i = 0; i < kLong && !world.rails.wants_gpu_look(); ++i) world.tick();
  REQUIRE(world.rails.wants_gpu_look());
  for (const Decision& decision : world.all)
    CHECK(decision.verdict != Verdict::gpu_container);  // a wait that short is not journaled
  world.input.gpu_ruled_out = world.time;
  REQUIRE(world.lowers(Resource::cpu, 1));
  CHECK(world.lowers(Resource::cpu, 2 * kLong));  // further down without another look
  CHECK_FALSE(world.rails.wants_gpu_look());
}

TEST_CASE("a look for a GPU is fresh for two intervals where these are longer") {
  for (const int age : {8, 9}) {
    RailWorld world;
    world.interval = std::chrono::seconds(4);
    world.wish.memory.reset();
    bool lowered = false;
    for (int i = 0; i < kLong && !lowered; ++i) {
      world.input.gpu_ruled_out = world.time + world.interval - std::chrono::seconds(age);
      lowered = world.lowers(Resource::cpu, 1);
    }
    CHECK(lowered == (age == 8));
  }
}

TEST_CASE("a look for a GPU is asked for while the quota waits for its turn, and for a quota "
          "alone") {
  RailWorld world;
  world.wish.memory.reset();
  REQUIRE(world.lowers(Resource::cpu, kLong));
  world.ticks(40);
  const auto wish = std::exchange(world.wish.cpu, Cores{8});
  REQUIRE(world.find(Resource::cpu, Direction::raise, 2).has_value());
  CHECK(world.sample.limits.cpu_max == world.original.cpu_max);
  world.wish.cpu = wish;
  world.input.gpu_ruled_out = world.time - std::chrono::minutes(1);
  world.tick();
  CHECK(world.rails.holding(Resource::cpu) == Verdict::rate_limited);
  CHECK(world.rails.wants_gpu_look());
  world.wish.cpu.reset();
  world.tick();
  CHECK_FALSE(world.rails.wants_gpu_look());
}

// rule: CPU-04
TEST_CASE("lower_gpu_quota lowers the quota of a container with a GPU like any other") {
  RailsConfig config;
  config.lower_gpu_quota = true;
  RailWorld plain(config), gpu(config);
  gpu.input.gpu = true;
  for (RailWorld* world : {&plain, &gpu}) world->ticks(kLong);
  CHECK(allowed_lowerings(plain, Resource::cpu) > 0);
  CHECK(gpu.sample.limits == plain.sample.limits);
}

// rule: S-01
TEST_CASE("a container without a limit is left alone unless manage_unlimited") {
  const auto unlimited = [](RailWorld& w) {
    if (w.time != MonotonicTime{}) return;
    w.sample.limits.cpu_max->quota.reset();
    w.sample.limits.memory_max->bytes.reset();
    w.original = w.sample.limits;
  };
  CHECK(holds_both(Verdict::no_limit, unlimited));
  RailWorld world;
  unlimited(world);
  world.input.manage_unlimited = true;
  CHECK(world.lowers(Resource::cpu, kLong));
  CHECK(world.cores() == doctest::Approx(14));  // 16 of the host, two fewer
}

// rule: S-05
TEST_CASE("an unknown phase is not lowered") {
  CHECK(holds_both(Verdict::phase_unknown,
                   [](RailWorld& w) { w.input.phase = RailWorld::unknown(); }));
}

// rule: S-05
TEST_CASE("59 samples are not enough for CPU, 60 are; 19 for memory, 20 are") {
  const auto held = [](Resource resource, double count) {
    return holds(resource, Verdict::not_enough_samples, [count](RailWorld& w) {
      w.wish.cpu_sample_count = w.wish.memory_sample_count = count;
    });
  };
  CHECK(held(Resource::cpu, 59));
  CHECK_FALSE(held(Resource::cpu, 60));
  CHECK(held(Resource::memory, 19));
  CHECK_FALSE(held(Resource::memory, 20));
}

// rule: S-05
TEST_CASE("two earlier runs are not enough, three are") {
  const auto runs = [](int count) {
    return [count](RailWorld& w) {
      w.wish.cpu_sample_count = w.wish.memory_sample_count = 1;
      w.wish.earlier_runs = count;
    };
  };
  CHECK(holds_both(Verdict::not_enough_samples, runs(2)));
  CHECK_FALSE(holds_both(Verdict::not_enough_samples, runs(3)));
}

// rule: S-07
TEST_CASE("a gap holds, and ten seconds after it") {
  CHECK(holds_both(Verdict::stale_data, [](RailWorld& w) { w.input.gap = true; }));
  RailWorld world;
  world.ticks(10);
  world.wish.cpu_sample_count = world.wish.memory_sample_count = 1;
  world.ticks(30);
  world.wish.cpu_sample_count = world.wish.memory_sample_count = 100;
  world.input.gap = true;
  world.tick();
  world.input.gap = false;
  CHECK_FALSE(world.lowers(Resource::cpu, 9));
  CHECK(world.lowers(Resource::cpu, 1));
}

// rule: S-07
TEST_CASE("a frozen container is not lowered") {
  CHECK(holds_both(Verdict::stale_data, [](RailWorld& w) { w.sample.frozen = true; }));
}

// rule: S-07
TEST_CASE("a counter that fell holds") {
  CHECK(holds_both(Verdict::stale_data, [](RailWorld& w) {
    if (w.previous) w.previous->memory.pgfault = 1;  // and now it is 0
  }));
}

TEST_CASE("ten seconds after a thaw nothing is lowered") {
  RailWorld world = almost_lowered();
  world.sample.frozen = true;
  world.tick();
  world.sample.frozen = false;
  world.time += std::chrono::seconds(60);  // a slow reader: the hold of the frost itself is over
  CHECK_FALSE(world.lowers(Resource::cpu, 10));
  CHECK(world.lowers(Resource::cpu, 1));
}

TEST_CASE("ten seconds after a counter that fell nothing is lowered") {
  RailWorld world = almost_lowered();
  world.previous->memory.pgfault = 1;  // and now it is 0
  world.tick();
  CHECK_FALSE(world.lowers(Resource::cpu, 9));
  CHECK(world.lowers(Resource::cpu, 1));
}

// rule: S-07
TEST_CASE("a source that stopped holds, and ten seconds more once it is back") {
  const auto stops = [](auto Sample::*source) {
    RailWorld world = almost_lowered();
    const auto before = world.sample.*source;
    world.sample.*source = {};
    CHECK_FALSE(world.lowers(Resource::cpu, kLong));
    CHECK(world.rails.holding(Resource::cpu) == Verdict::stale_data);
    world.sample.*source = before;
    CHECK_FALSE(world.lowers(Resource::cpu, 9));
    CHECK(world.lowers(Resource::cpu, 1));
  };
  stops(&Sample::memory_events);
  stops(&Sample::io_pressure);
}

TEST_CASE("a first sample alone lowers nothing") {
  CHECK(holds_both(Verdict::stale_data, [](RailWorld& w) { w.previous.reset(); }));
}

// rule: S-07
TEST_CASE("twenty seconds after processes came nothing is lowered") {
  RailWorld world;
  CHECK_FALSE(world.lowers(Resource::cpu, 20));
  CHECK(world.lowers(Resource::cpu, 1));
}

// rule: S-05
TEST_CASE("pressure that is not quiet holds, each of the three") {
  CHECK(holds_both(Verdict::pressure_not_quiet,
                   [](RailWorld& w) { w.set_pressure(0.10, 0, 0); }));
  CHECK(holds_both(Verdict::pressure_not_quiet,
                   [](RailWorld& w) { w.set_pressure(0, 0.001, 0); }));
  CHECK(holds_both(Verdict::pressure_not_quiet,
                   [](RailWorld& w) { w.set_pressure(0, 0, 0.001); }));
}

TEST_CASE("CPU pressure holds memory only while it is told to") {
  RailsConfig config;
  config.cpu_pressure_holds_memory = false;
  RailWorld free(config), strict;
  for (RailWorld* world : {&free, &strict}) world->set_pressure(0.5, 0, 0);
  CHECK(free.lowers(Resource::memory, kLong));
  CHECK_FALSE(free.lowers(Resource::cpu, kLong));
  CHECK_FALSE(strict.lowers(Resource::memory, kLong));
}

TEST_CASE("pressure just below the bounds is quiet") {
  RailWorld world;
  world.set_pressure(0.099, 0.0009, 0.0009);
  CHECK(world.lowers(Resource::cpu, kLong));
}

// rule: S-05
TEST_CASE("without PSI growing refaults, major faults, scans or throttling hold") {
  const auto grow = [](auto field) {
    return [field](RailWorld& w) {
      w.without_psi();
      field(w);
    };
  };
  CHECK(holds_both(Verdict::pressure_not_quiet, grow([](RailWorld& w) { w.refaults = 1; })));
  CHECK(holds_both(Verdict::pressure_not_quiet, grow([](RailWorld& w) { w.major_faults = 1; })));
  CHECK(holds_both(Verdict::pressure_not_quiet,
                   grow([](RailWorld& w) { *w.sample.memory.pgscan_direct += 1; })));
  CHECK(holds_both(Verdict::pressure_not_quiet,
                   grow([](RailWorld& w) { *w.sample.cpu.nr_throttled += 1; })));
  RailWorld calm;
  calm.without_psi();
  CHECK(calm.lowers(Resource::memory, kLong));
}

TEST_CASE("memory is not lowered within five minutes of a max event, and is after") {
  RailWorld world;
  world.ticks(5);
  world.sample.memory_events.max = 1;
  CHECK_FALSE(world.lowers(Resource::memory, 300));
  CHECK(world.lowers(Resource::memory, 5));
}

// rule: MEM-03
TEST_CASE("need that rose by more than 1 % of the limit since the last sample is not squeezed") {
  const auto rises_each_tick_by = [](std::uint64_t bytes) {
    return [bytes](RailWorld& w) {
      const auto second = w.time.time_since_epoch() / std::chrono::seconds(1);
      // From next to nothing, so that it stays far below the limit for all of the test.
      w.sample.memory.anon_bytes = static_cast<std::uint64_t>(second) * bytes;
    };
  };
  RailsConfig config;
  config.start_up = std::chrono::seconds(0);
  RailWorld plain(config);
  CHECK(plain.lowers(Resource::memory, 10));
  const auto lowers = [&](std::uint64_t bytes) {
    RailWorld world(config);
    world.wish.cpu.reset();
    for (int i = 0; i < 10; ++i) {
      rises_each_tick_by(bytes)(world);
      if (world.lowers(Resource::memory, 1)) return true;
    }
    CHECK(world.rails.holding(Resource::memory) == Verdict::memory_growing);
    return false;
  };
  CHECK_FALSE(lowers(82 * kMiB));
  CHECK(lowers(81 * kMiB));
}

// rule: MEM-06
TEST_CASE("page cache that would meet the new limit at once holds") {
  CHECK(holds(Resource::memory, Verdict::cache_in_way,
              [](RailWorld& w) {
                w.sample.memory_current = Bytes{8 * kGiB - 4096};
                w.sample.memory.active_file_bytes = 7 * kGiB - 4096;
              }));
}

// rule: S-05
TEST_CASE("a change of less than 5 % is not worth a write") {
  const auto wish = [](double cores) {
    return [cores](RailWorld& w) { w.wish.cpu = Cores{cores}; };
  };
  CHECK(holds(Resource::cpu, Verdict::too_small, wish(3.81)));
  CHECK_FALSE(holds(Resource::cpu, Verdict::too_small, wish(3.79)));
}

TEST_CASE("a quota comes down once a minute, after the trial of the last change") {
  RailWorld world;
  world.wish.cpu = Cores{0.1};
  world.wish.memory.reset();
  world.cpu_cores = 0.01;
  world.sample.limits.cpu_max->quota = Microseconds{4'000'000};  // 40 cores
  world.original = world.sample.limits;
  REQUIRE(world.lowers(Resource::cpu, kLong));
  const MonotonicTime first = world.time;
  world.tick();
  CHECK(world.rails.holding(Resource::cpu) == Verdict::trial_running);
  world.ticks(35);
  CHECK(world.rails.holding(Resource::cpu) == Verdict::rate_limited);
  REQUIRE(world.lowers(Resource::cpu, kLong));
  CHECK(world.time - first == std::chrono::seconds(60));
}

TEST_CASE("memory.high follows need ten seconds after it was raised") {
  RailWorld world;
  world.wish.cpu.reset();
  REQUIRE(world.lowers(Resource::memory, kLong));
  world.ticks(40);
  world.wish.memory = Bytes{4 * kGiB};
  REQUIRE(world.find(Resource::memory, Direction::raise, 2).has_value());
  const MonotonicTime raised = world.time;
  world.wish.memory = Bytes{2 * kGiB};
  world.tick();
  CHECK(world.rails.holding(Resource::memory) == Verdict::rate_limited);
  REQUIRE(world.lowers(Resource::memory, kLong));
  CHECK(world.time - raised == std::chrono::seconds(10));
}

// rule: S-06
TEST_CASE("while a trial runs nothing is lowered") {
  RailsConfig config;
  config.cpu_lower_window = config.memory_lower_window = std::chrono::seconds(1);
  RailWorld world(config);
  REQUIRE(world.lowers(Resource::memory, kLong));
  CHECK_FALSE(world.lowers(Resource::memory, 29));
  CHECK(world.lowers(Resource::memory, 3));
}

TEST_CASE("the quota does not wait for a trial of memory, nor memory for one of the quota") {
  for (const Resource first : {Resource::cpu, Resource::memory}) {
    const Resource second = first == Resource::cpu ? Resource::memory : Resource::cpu;
    RailWorld world;
    const Allocation wish = world.wish;
    (second == Resource::cpu ? world.wish.cpu_sample_count : world.wish.memory_sample_count) = 0;
    REQUIRE(world.lowers(first, kLong));
    world.wish = wish;
    REQUIRE(world.lowers(second, 5));
    world.ticks(40);
    CHECK(std::ranges::count(world.outcomes, OutcomeKind::trial_passed, &Outcome::kind) == 2);
  }
}

TEST_CASE("a trial lasts three model steps where those are longer") {
  RailWorld world;
  world.input.model_step_seconds = 20;
  REQUIRE(world.lowers(Resource::memory, kLong));
  world.ticks(59);
  CHECK(world.outcomes.empty());
  world.ticks(1);
  REQUIRE_FALSE(world.outcomes.empty());
  CHECK(world.outcomes[0].kind == OutcomeKind::trial_passed);
}

TEST_CASE("a container whose host has no budget left waits") {
  CHECK(holds_both(Verdict::rate_limited, [](RailWorld& w) {
    for (int i = 0; i < 4; ++i) w.budget.lowered(w.time, "", CgroupId{9, 9});
  }));
}

TEST_CASE("memory whose need was not read is not lowered") {
  RailWorld world;
  world.sample.memory = {};
  world.sample.memory.workingset_refault_file = 0;
  world.sample.memory.pgmajfault = 0;
  CHECK_FALSE(world.lowers(Resource::memory, kLong));
}

TEST_CASE("counters that do not exist stop nothing that does not need them") {
  RailWorld world;
  world.sample.memory_events = {};
  world.sample.io_pressure = {};
  world.sample.limits.cpu_max_burst.reset();
  world.sample.populated.reset();
  world.sample.frozen.reset();
  CHECK(world.lowers(Resource::cpu, kLong));
  CHECK(allowed_lowerings(world, Resource::cpu) == 1);
}
