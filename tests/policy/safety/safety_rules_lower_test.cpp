// For each rule: with its cause nothing is lowered, without it something is.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "tests/policy/safety/safety_world.h"

using namespace cgphase;

namespace {


// Runs `cause` before each tick. Returns true if only the cause kept the resource from being
// lowered, and the verdict says so.
bool blocks(Resource resource, Verdict verdict, const std::function<void(SafetyWorld&)>& cause,
           const SafetyConfig& config = {}) {
  SafetyWorld plain(config), world(config);
  for (SafetyWorld* one : {&plain, &world}) {  // its own trials would block the other resource
    if (resource == Resource::cpu) one->recommendation.memory.reset();
    if (resource == Resource::memory) one->recommendation.cpu.reset();
  }
  if (!plain.lowers(resource, kLong)) return false;
  for (int i = 0; i < kLong; ++i) {
    cause(world);
    if (world.lowers(resource, 1)) return false;
  }
  return world.safety.blocked_by(resource) == verdict;
}

bool blocks_both(Verdict verdict, const std::function<void(SafetyWorld&)>& cause) {
  return blocks(Resource::cpu, verdict, cause) && blocks(Resource::memory, verdict, cause);
}

// A world in which one more sample allows the CPU to be lowered.
SafetyWorld almost_lowered() {
  SafetyWorld world;
  world.recommendation.cpu_sample_count = 1;
  world.recommendation.memory.reset();
  world.ticks(40);
  world.recommendation.cpu_sample_count = 100;
  return world;
}

int allowed_lowerings(const SafetyWorld& world, Resource resource) {
  return static_cast<int>(
      std::count_if(world.all.begin(), world.all.end(), [&](const Decision& decision) {
        return decision.verdict == Verdict::allowed && decision.resource == resource &&
               decision.direction == Direction::lower;
      }));
}

}  // namespace

// rule: S-01
TEST_CASE("mode observe lowers nothing and recommends nothing") {
  CHECK(blocks_both(Verdict::observe_mode, [](SafetyWorld& w) { w.input.mode = Mode::observe; }));
  SafetyWorld world;
  world.input.mode = Mode::observe;
  world.ticks(kLong);
  CHECK(world.all.empty());
}

// rule: S-01
TEST_CASE("mode advise reports the decision that enforce would write") {
  SafetyWorld advised, enforced;
  advised.input.mode = Mode::advise;
  advised.ticks(kLong);
  const auto written = enforced.find(Resource::cpu, Direction::lower, kLong);
  REQUIRE(written.has_value());
  const auto reported = std::find_if(advised.all.begin(), advised.all.end(), [](const Decision& d) {
    return d.resource == Resource::cpu && d.verdict == Verdict::advise_mode;
  });
  REQUIRE(reported != advised.all.end());
  CHECK(reported->new_limits == written->new_limits);
  CHECK(reported->time == written->time);
  CHECK(advised.sample.limits == advised.original);
}

TEST_CASE("a refusal is reported once, and again after the recommendation changed") {
  SafetyWorld world;
  world.input.phase = SafetyWorld::unknown();
  world.ticks(kLong);
  const auto cpu = [&] {
    return std::count_if(world.all.begin(), world.all.end(), [](const Decision& d) {
      return d.resource == Resource::cpu && d.verdict == Verdict::phase_unknown;
    });
  };
  CHECK(cpu() == 1);
  world.recommendation.cpu = Cores{3};
  world.ticks(5);
  CHECK(cpu() == 2);
}

TEST_CASE("a container with hands_off is never lowered") {
  CHECK(blocks_both(Verdict::hands_off, [](SafetyWorld& w) { w.input.hands_off = true; }));
}

// rule: CPU-04
TEST_CASE("a container with a GPU keeps its CPU quota, and its memory is lowered") {
  const auto gpu = [](SafetyWorld& w) { w.input.gpu = true; };
  CHECK(blocks(Resource::cpu, Verdict::gpu_container, gpu));
  SafetyWorld world;
  gpu(world);
  world.ticks(kLong);
  CHECK(world.sample.limits.cpu_max == world.original.cpu_max);
  CHECK(world.sample.limits.cpu_max_burst == world.original.cpu_max_burst);
  CHECK(allowed_lowerings(world, Resource::memory) > 0);
  const auto reported = std::count_if(world.all.begin(), world.all.end(), [](const Decision& d) {
    return d.verdict == Verdict::gpu_container;
  });
  CHECK(reported == 1);
}

TEST_CASE("the verdict for a GPU does not depend on the recommendation") {
  SafetyWorld world;
  world.input.gpu = true;
  world.recommendation.cpu.reset();
  world.tick();
  CHECK(world.safety.blocked_by(Resource::cpu) == Verdict::gpu_container);
  CHECK(world.safety.blocked_by(Resource::memory) != Verdict::gpu_container);
}

TEST_CASE("the first lowering of a quota needs a recent GPU scan") {
  const auto looked = [](std::chrono::seconds ago) {  // relative to the next tick
    return [ago](SafetyWorld& w) { w.input.gpu_ruled_out = w.time + w.interval - ago; };
  };
  const auto old = looked(kFreshGpuLook + std::chrono::seconds(1));
  CHECK(blocks(Resource::cpu, Verdict::gpu_container, old));
  CHECK_FALSE(blocks(Resource::cpu, Verdict::gpu_container, looked(kFreshGpuLook)));
  SafetyConfig any;
  any.lower_gpu_quota = true;
  CHECK_FALSE(blocks(Resource::cpu, Verdict::gpu_container, old, any));
  SafetyWorld world;
  world.recommendation.memory.reset();
  world.input.gpu_ruled_out = world.time;
  for (int i = 0; i < kLong && !world.safety.wants_gpu_look(); ++i) world.tick();
  REQUIRE(world.safety.wants_gpu_look());
  for (const Decision& decision : world.all)
    CHECK(decision.verdict != Verdict::gpu_container);  // such a short wait is not journaled
  world.input.gpu_ruled_out = world.time;
  REQUIRE(world.lowers(Resource::cpu, 1));
  CHECK(world.lowers(Resource::cpu, 2 * kLong));  // a further lowering needs no new scan
  CHECK_FALSE(world.safety.wants_gpu_look());
}

TEST_CASE("a GPU scan is recent for two intervals if these are longer") {
  for (const int age : {8, 9}) {
    SafetyWorld world;
    world.interval = std::chrono::seconds(4);
    world.recommendation.memory.reset();
    bool lowered = false;
    for (int i = 0; i < kLong && !lowered; ++i) {
      world.input.gpu_ruled_out = world.time + world.interval - std::chrono::seconds(age);
      lowered = world.lowers(Resource::cpu, 1);
    }
    CHECK(lowered == (age == 8));
  }
}

TEST_CASE("a GPU scan is requested while the quota waits for its turn, and only for a quota") {
  SafetyWorld world;
  world.recommendation.memory.reset();
  REQUIRE(world.lowers(Resource::cpu, kLong));
  world.ticks(40);
  const auto recommendation = std::exchange(world.recommendation.cpu, Cores{8});
  REQUIRE(world.find(Resource::cpu, Direction::raise, 2).has_value());
  CHECK(world.sample.limits.cpu_max == world.original.cpu_max);
  world.recommendation.cpu = recommendation;
  world.input.gpu_ruled_out = world.time - std::chrono::minutes(1);
  world.tick();
  CHECK(world.safety.blocked_by(Resource::cpu) == Verdict::rate_limited);
  CHECK(world.safety.wants_gpu_look());
  world.recommendation.cpu.reset();
  world.tick();
  CHECK_FALSE(world.safety.wants_gpu_look());
}

// rule: CPU-04
TEST_CASE("with lower_gpu_quota the quota of a container with a GPU is lowered as any other") {
  SafetyConfig config;
  config.lower_gpu_quota = true;
  SafetyWorld plain(config), gpu(config);
  gpu.input.gpu = true;
  for (SafetyWorld* world : {&plain, &gpu}) world->ticks(kLong);
  CHECK(allowed_lowerings(plain, Resource::cpu) > 0);
  CHECK(gpu.sample.limits == plain.sample.limits);
}

// rule: S-01
TEST_CASE("a container without a limit is not lowered without manage_unlimited") {
  const auto unlimited = [](SafetyWorld& w) {
    if (w.time != MonotonicTime{}) return;
    w.sample.limits.cpu_max->quota.reset();
    w.sample.limits.memory_max->bytes.reset();
    w.original = w.sample.limits;
  };
  CHECK(blocks_both(Verdict::no_limit, unlimited));
  SafetyWorld world;
  unlimited(world);
  world.input.manage_unlimited = true;
  CHECK(world.lowers(Resource::cpu, kLong));
  CHECK(world.cores() == doctest::Approx(14));  // 16 of the host, minus two
}

// rule: S-05
TEST_CASE("in an unknown phase nothing is lowered") {
  CHECK(blocks_both(Verdict::phase_unknown,
                   [](SafetyWorld& w) { w.input.phase = SafetyWorld::unknown(); }));
}

// rule: S-05
TEST_CASE("CPU needs 60 samples, memory needs 20") {
  const auto held = [](Resource resource, double count) {
    return blocks(resource, Verdict::not_enough_samples, [count](SafetyWorld& w) {
      w.recommendation.cpu_sample_count = w.recommendation.memory_sample_count = count;
    });
  };
  CHECK(held(Resource::cpu, 59));
  CHECK_FALSE(held(Resource::cpu, 60));
  CHECK(held(Resource::memory, 19));
  CHECK_FALSE(held(Resource::memory, 20));
}

// rule: S-05
TEST_CASE("three earlier runs are enough, two are not") {
  const auto runs = [](int count) {
    return [count](SafetyWorld& w) {
      w.recommendation.cpu_sample_count = w.recommendation.memory_sample_count = 1;
      w.recommendation.earlier_runs = count;
    };
  };
  CHECK(blocks_both(Verdict::not_enough_samples, runs(2)));
  CHECK_FALSE(blocks_both(Verdict::not_enough_samples, runs(3)));
}

// rule: S-07
TEST_CASE("nothing is lowered during a gap and for ten seconds after it") {
  CHECK(blocks_both(Verdict::stale_data, [](SafetyWorld& w) { w.input.gap = true; }));
  SafetyWorld world;
  world.ticks(10);
  world.recommendation.cpu_sample_count = world.recommendation.memory_sample_count = 1;
  world.ticks(30);
  world.recommendation.cpu_sample_count = world.recommendation.memory_sample_count = 100;
  world.input.gap = true;
  world.tick();
  world.input.gap = false;
  CHECK_FALSE(world.lowers(Resource::cpu, 9));
  CHECK(world.lowers(Resource::cpu, 1));
}

// rule: S-07
TEST_CASE("a frozen container is not lowered") {
  CHECK(blocks_both(Verdict::stale_data, [](SafetyWorld& w) { w.sample.frozen = true; }));
}

// rule: S-07
TEST_CASE("nothing is lowered after a counter reset") {
  CHECK(blocks_both(Verdict::stale_data, [](SafetyWorld& w) {
    if (w.previous) w.previous->memory.pgfault = 1;  // now it is 0
  }));
}

TEST_CASE("nothing is lowered for ten seconds after a thaw") {
  SafetyWorld world = almost_lowered();
  world.sample.frozen = true;
  world.tick();
  world.sample.frozen = false;
  world.time += std::chrono::seconds(60);  // a slow reader: the wait after the freeze itself is
                                           // over
  CHECK_FALSE(world.lowers(Resource::cpu, 10));
  CHECK(world.lowers(Resource::cpu, 1));
}

TEST_CASE("nothing is lowered for ten seconds after a counter reset") {
  SafetyWorld world = almost_lowered();
  world.previous->memory.pgfault = 1;  // now it is 0
  world.tick();
  CHECK_FALSE(world.lowers(Resource::cpu, 9));
  CHECK(world.lowers(Resource::cpu, 1));
}

// rule: S-07
TEST_CASE("nothing is lowered while a source is missing and for ten seconds after it returns") {
  const auto stops = [](auto Sample::*source) {
    SafetyWorld world = almost_lowered();
    const auto before = world.sample.*source;
    world.sample.*source = {};
    CHECK_FALSE(world.lowers(Resource::cpu, kLong));
    CHECK(world.safety.blocked_by(Resource::cpu) == Verdict::stale_data);
    world.sample.*source = before;
    CHECK_FALSE(world.lowers(Resource::cpu, 9));
    CHECK(world.lowers(Resource::cpu, 1));
  };
  stops(&Sample::memory_events);
  stops(&Sample::io_pressure);
}

TEST_CASE("a single first sample lowers nothing") {
  CHECK(blocks_both(Verdict::stale_data, [](SafetyWorld& w) { w.previous.reset(); }));
}

// rule: S-07
TEST_CASE("nothing is lowered for twenty seconds after processes started") {
  SafetyWorld world;
  CHECK_FALSE(world.lowers(Resource::cpu, 20));
  CHECK(world.lowers(Resource::cpu, 1));
}

// rule: S-05
TEST_CASE("each of the three pressures blocks a lowering") {
  CHECK(blocks_both(Verdict::pressure_not_quiet,
                   [](SafetyWorld& w) { w.set_pressure(0.10, 0, 0); }));
  CHECK(blocks_both(Verdict::pressure_not_quiet,
                   [](SafetyWorld& w) { w.set_pressure(0, 0.001, 0); }));
  CHECK(blocks_both(Verdict::pressure_not_quiet,
                   [](SafetyWorld& w) { w.set_pressure(0, 0, 0.001); }));
}

TEST_CASE("CPU pressure blocks memory only with cpu_pressure_holds_memory") {
  SafetyConfig config;
  config.cpu_pressure_holds_memory = false;
  SafetyWorld free(config), strict;
  for (SafetyWorld* world : {&free, &strict}) world->set_pressure(0.5, 0, 0);
  CHECK(free.lowers(Resource::memory, kLong));
  CHECK_FALSE(free.lowers(Resource::cpu, kLong));
  CHECK_FALSE(strict.lowers(Resource::memory, kLong));
}

TEST_CASE("pressure just below its limit does not block") {
  SafetyWorld world;
  world.set_pressure(0.099, 0.0009, 0.0009);
  CHECK(world.lowers(Resource::cpu, kLong));
}

// rule: S-05
TEST_CASE("without PSI growing refaults, major faults, scans or throttling block a lowering") {
  const auto grow = [](auto field) {
    return [field](SafetyWorld& w) {
      w.without_psi();
      field(w);
    };
  };
  CHECK(blocks_both(Verdict::pressure_not_quiet, grow([](SafetyWorld& w) { w.refaults = 1; })));
  CHECK(blocks_both(Verdict::pressure_not_quiet, grow([](SafetyWorld& w) { w.major_faults = 1; })));
  CHECK(blocks_both(Verdict::pressure_not_quiet,
                   grow([](SafetyWorld& w) { *w.sample.memory.pgscan_direct += 1; })));
  CHECK(blocks_both(Verdict::pressure_not_quiet,
                   grow([](SafetyWorld& w) { *w.sample.cpu.nr_throttled += 1; })));
  SafetyWorld calm;
  calm.without_psi();
  CHECK(calm.lowers(Resource::memory, kLong));
}

TEST_CASE("memory is not lowered for five minutes after a max event") {
  SafetyWorld world;
  world.ticks(5);
  world.sample.memory_events.max = 1;
  CHECK_FALSE(world.lowers(Resource::memory, 300));
  CHECK(world.lowers(Resource::memory, 5));
}

// rule: MEM-03
TEST_CASE("memory is not lowered while need grows by more than 1 % of the limit per sample") {
  const auto rises_each_tick_by = [](std::uint64_t bytes) {
    return [bytes](SafetyWorld& w) {
      const auto second = w.time.time_since_epoch() / std::chrono::seconds(1);
      // Starts near zero, so that need stays far below the limit during the test.
      w.sample.memory.anon_bytes = static_cast<std::uint64_t>(second) * bytes;
    };
  };
  SafetyConfig config;
  config.start_up = std::chrono::seconds(0);
  SafetyWorld plain(config);
  CHECK(plain.lowers(Resource::memory, 10));
  const auto lowers = [&](std::uint64_t bytes) {
    SafetyWorld world(config);
    world.recommendation.cpu.reset();
    for (int i = 0; i < 10; ++i) {
      rises_each_tick_by(bytes)(world);
      if (world.lowers(Resource::memory, 1)) return true;
    }
    CHECK(world.safety.blocked_by(Resource::memory) == Verdict::memory_growing);
    return false;
  };
  CHECK_FALSE(lowers(82 * kMiB));
  CHECK(lowers(81 * kMiB));
}

// rule: MEM-06
TEST_CASE("page cache that would reach the new limit at once blocks a lowering") {
  CHECK(blocks(Resource::memory, Verdict::cache_in_way,
              [](SafetyWorld& w) {
                w.sample.memory_current = Bytes{8 * kGiB - 4096};
                w.sample.memory.active_file_bytes = 7 * kGiB - 4096;
              }));
}

// rule: S-05
TEST_CASE("a change of less than 5 % is not worth a write") {
  const auto recommendation = [](double cores) {
    return [cores](SafetyWorld& w) { w.recommendation.cpu = Cores{cores}; };
  };
  CHECK(blocks(Resource::cpu, Verdict::too_small, recommendation(3.81)));
  CHECK_FALSE(blocks(Resource::cpu, Verdict::too_small, recommendation(3.79)));
}

TEST_CASE("a quota is lowered once per minute, after the trial of the last change") {
  SafetyWorld world;
  world.recommendation.cpu = Cores{0.1};
  world.recommendation.memory.reset();
  world.cpu_cores = 0.01;
  world.sample.limits.cpu_max->quota = Microseconds{4'000'000};  // 40 cores
  world.original = world.sample.limits;
  REQUIRE(world.lowers(Resource::cpu, kLong));
  const MonotonicTime first = world.time;
  world.tick();
  CHECK(world.safety.blocked_by(Resource::cpu) == Verdict::trial_running);
  world.ticks(35);
  CHECK(world.safety.blocked_by(Resource::cpu) == Verdict::rate_limited);
  REQUIRE(world.lowers(Resource::cpu, kLong));
  CHECK(world.time - first == std::chrono::seconds(60));
}

TEST_CASE("memory.high follows need ten seconds after a raise") {
  SafetyWorld world;
  world.recommendation.cpu.reset();
  REQUIRE(world.lowers(Resource::memory, kLong));
  world.ticks(40);
  world.recommendation.memory = Bytes{4 * kGiB};
  REQUIRE(world.find(Resource::memory, Direction::raise, 2).has_value());
  const MonotonicTime raised = world.time;
  world.recommendation.memory = Bytes{2 * kGiB};
  world.tick();
  CHECK(world.safety.blocked_by(Resource::memory) == Verdict::rate_limited);
  REQUIRE(world.lowers(Resource::memory, kLong));
  CHECK(world.time - raised == std::chrono::seconds(10));
}

// rule: S-06
TEST_CASE("nothing is lowered while a trial of the resource runs") {
  SafetyConfig config;
  config.cpu_lower_window = config.memory_lower_window = std::chrono::seconds(1);
  SafetyWorld world(config);
  REQUIRE(world.lowers(Resource::memory, kLong));
  CHECK_FALSE(world.lowers(Resource::memory, 29));
  CHECK(world.lowers(Resource::memory, 3));
}

TEST_CASE("neither resource waits for a trial of the other") {
  for (const Resource first : {Resource::cpu, Resource::memory}) {
    const Resource second = first == Resource::cpu ? Resource::memory : Resource::cpu;
    SafetyWorld world;
    const Recommendation recommendation = world.recommendation;
    (second == Resource::cpu ? world.recommendation.cpu_sample_count
                             : world.recommendation.memory_sample_count) = 0;
    REQUIRE(world.lowers(first, kLong));
    world.recommendation = recommendation;
    REQUIRE(world.lowers(second, 5));
    world.ticks(40);
    CHECK(std::ranges::count(world.outcomes, OutcomeKind::trial_passed, &Outcome::kind) == 2);
  }
}

TEST_CASE("a trial lasts at least three model steps") {
  SafetyWorld world;
  world.input.model_step_seconds = 20;
  REQUIRE(world.lowers(Resource::memory, kLong));
  world.ticks(59);
  CHECK(world.outcomes.empty());
  world.ticks(1);
  REQUIRE_FALSE(world.outcomes.empty());
  CHECK(world.outcomes[0].kind == OutcomeKind::trial_passed);
}

TEST_CASE("a container waits while the host's budget is used up") {
  CHECK(blocks_both(Verdict::rate_limited, [](SafetyWorld& w) {
    for (int i = 0; i < 4; ++i) w.budget.lowered(w.time, "", CgroupId{9, 9});
  }));
}

TEST_CASE("memory is not lowered if need is unknown") {
  SafetyWorld world;
  world.sample.memory = {};
  world.sample.memory.workingset_refault_file = 0;
  world.sample.memory.pgmajfault = 0;
  CHECK_FALSE(world.lowers(Resource::memory, kLong));
}

TEST_CASE("missing counters block only rules that need them") {
  SafetyWorld world;
  world.sample.memory_events = {};
  world.sample.io_pressure = {};
  world.sample.limits.cpu_max_burst.reset();
  world.sample.populated.reset();
  world.sample.frozen.reset();
  CHECK(world.lowers(Resource::cpu, kLong));
  CHECK(allowed_lowerings(world, Resource::cpu) == 1);
}
