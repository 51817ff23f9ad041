// CPU use per phase, and the floor that it gives for the quota.
#include "policy/phase/phase_usage.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "policy/safety/limit_arithmetic.h"
#include "tests/policy/safety/safety_world.h"

using namespace cgphase;
using std::chrono::hours;
using std::chrono::seconds;

namespace {

constexpr double kBucket = 1.05;  // of the histogram: at most this factor above the true quantile

// A world that recommends a quota of zero and nothing else.
struct IdleRecommendation : SafetyWorld {
  IdleRecommendation() {
    recommendation.memory.reset();
    recommendation.cpu = Cores{0};
  }
  // Uses `cores` for `seconds` without a lowering.
  void use(double cores, int seconds, Phase phase = known(0)) {
    const Phase before = input.phase;
    const auto recommended = recommendation.cpu;
    recommendation.cpu.reset();
    input.phase = phase;
    cpu_cores = cores;
    ticks(seconds);
    recommendation.cpu = recommended;
    input.phase = before;
  }
  // The quota after all lowerings of a container that now uses 0.2 cores.
  double lowest() {
    cpu_cores = 0.2;
    ticks(600);
    return cores();
  }
};

}  // namespace

TEST_CASE("the p99 of a phase is at most 5 % above the true one and excludes other phases") {
  PhaseUsage usage;
  for (int i = 1; i <= 1000; ++i)
    usage.add(SafetyWorld::known(0), 0.004 * i, 1, MonotonicTime(seconds(i)));
  CHECK(usage.p99_cores(SafetyWorld::known(0)) >= 3.96);
  CHECK(usage.p99_cores(SafetyWorld::known(0)) <= 3.96 * kBucket);
  CHECK(usage.p99_cores(SafetyWorld::known(1)) == 0);
}

TEST_CASE("use in an unknown phase, or tiny use, gives no floor") {
  PhaseUsage usage;
  usage.add(SafetyWorld::unknown(), 3, 1, MonotonicTime(seconds(1)));
  usage.add(SafetyWorld::known(1), 0.009, 1, MonotonicTime(seconds(2)));
  CHECK(usage.p99_cores(SafetyWorld::unknown()) == 0);
  CHECK(usage.p99_cores(SafetyWorld::known(1)) == 0);
}

TEST_CASE("use is stored for 33 phases and no more") {
  PhaseUsage usage;
  const auto count = static_cast<int>(PhaseUsage::kPhases);
  for (int index = 0; index <= count; ++index)
    usage.add(SafetyWorld::known(index), 1, 1, MonotonicTime(seconds(index)));
  CHECK(usage.p99_cores(SafetyWorld::known(count - 1)) >= 1);
  CHECK(usage.p99_cores(SafetyWorld::known(count)) == 0);
}

TEST_CASE("earlier use of a phase counts less and less") {
  PhaseUsage usage;
  for (int i = 0; i < 600; ++i) usage.add(SafetyWorld::known(0), 3, 1, MonotonicTime(seconds(i)));
  for (int i = 0; i < 600; ++i)
    usage.add(SafetyWorld::known(0), 1, 1, MonotonicTime(hours(8) + seconds(i)));
  CHECK(usage.p99_cores(SafetyWorld::known(0)) <= 1 * kBucket);
}

// rule: CPU-01
TEST_CASE("CPU is not lowered below 1.15 times the p99 of use in the phase") {
  IdleRecommendation world;
  world.use(1.2, 30);
  world.use(0.2, 60);  // the trial compares with these
  const double lowest = world.lowest();  // one second in twenty used more than the current use
  CHECK(lowest >= 1.15 * 1.2);
  CHECK(lowest <= 1.15 * 1.2 * kBucket + 1e-4);
  IdleRecommendation quiet;
  CHECK(quiet.lowest() <= 1.15 * 0.2 * kBucket + 1e-4);
}

// rule: S-05
TEST_CASE("a floor that leaves no step worth a write is reported with its value") {
  IdleRecommendation world;
  world.use(3.6, 30);
  world.use(0.2, 60);
  CHECK_FALSE(world.lowers(Resource::cpu, 40));
  CHECK(world.safety.blocked_by(Resource::cpu) == Verdict::at_floor);
  const auto reported = std::ranges::find(world.all, Verdict::at_floor, &Decision::verdict);
  REQUIRE(reported != world.all.end());
  CHECK(reported->evidence[Fact::floor].value_or(0) >= 1.15 * 3.6);
}

TEST_CASE("use of another phase, or in one second of two hundred, gives no floor") {
  IdleRecommendation world;
  world.use(1.2, 30, SafetyWorld::known(1));
  world.use(0.2, 600);
  world.use(1.2, 3);
  CHECK(world.lowest() <= 1.15 * 0.2 * kBucket + 1e-4);
}

TEST_CASE("a throttled second counts as the limit in force for the floor") {
  IdleRecommendation world;
  world.use(0.2, 60);
  world.throttled_periods = 1;  // rarely, so that no raise follows
  world.use(0.2, 1);
  world.throttled_periods = 0;
  world.use(0.2, 59);
  world.throttled_periods = 1;
  world.use(0.2, 1);
  world.throttled_periods = 0;
  world.use(0.2, 30);
  CHECK_FALSE(world.lowers(Resource::cpu, 40));
  CHECK(world.cores() == 4);
}

TEST_CASE("seconds while a container is frozen do not lower the floor") {
  IdleRecommendation world;
  world.use(1.2, 30);
  world.sample.frozen = true;
  world.use(0, 6000);
  world.sample.frozen = false;
  const double lowest = world.lowest();
  CHECK(lowest >= 1.15 * 1.2);
  CHECK(lowest < 2);
}

TEST_CASE("with few samples of the phase the floor comes from the known samples") {
  IdleRecommendation world;
  world.sample.limits.cpu_max->quota = world.sample.limits.cpu_max_burst = Microseconds{200'000};
  world.original = world.sample.limits;
  world.recommendation.cpu_sample_count = 1;
  world.recommendation.earlier_runs = 3;
  world.use(0.2, 30, SafetyWorld::known(1));
  REQUIRE(world.lowers(Resource::cpu, 1));  // the first second of phase 0
  CHECK(world.cores() <= 1.15 * 0.2 * kBucket + 1e-4);
  IdleRecommendation more;
  more.sample.limits = more.original = world.original;
  more.recommendation.cpu_sample_count = 1;
  more.recommendation.earlier_runs = 3;
  more.use(0.2, 30, SafetyWorld::known(1));
  more.use(1.2, 1);
  REQUIRE(more.lowers(Resource::cpu, 1));
  CHECK(more.cores() >= 1.15 * 1.2);
}
