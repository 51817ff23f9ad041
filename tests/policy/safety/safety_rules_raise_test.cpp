// Raises, trials and foreign changes: actions of the safety rules without a recommendation.
#include <doctest/doctest.h>

#include <algorithm>

#include "policy/safety/limit_arithmetic.h"
#include "tests/policy/safety/safety_world.h"

using namespace cgphase;
using std::chrono::seconds;

namespace {

bool has_outcome(const SafetyWorld& world, OutcomeKind kind) {
  return std::any_of(world.outcomes.begin(), world.outcomes.end(),
                     [&](const Outcome& outcome) { return outcome.kind == kind; });
}

}  // namespace

// rule: CPU-02
TEST_CASE("throttling above 2 % of five seconds raises by 1.2") {
  auto world = lowered_world();
  world.throttled_usec = 100'000;
  CHECK_FALSE(world.find(Resource::cpu, Direction::raise, 1).has_value());
  world.throttled_usec = 1;
  const auto raise = world.find(Resource::cpu, Direction::raise, 1);
  REQUIRE(raise.has_value());
  CHECK(raise->reason == Reason::throttled);
  CHECK(world.cores() == doctest::Approx(2.4));
}

// rule: CPU-02
TEST_CASE("three throttled periods in five seconds raise, two do not") {
  auto world = lowered_world();
  world.throttled_periods = 2;
  CHECK_FALSE(world.find(Resource::cpu, Direction::raise, 1).has_value());
  world.throttled_periods = 0;
  CHECK_FALSE(world.find(Resource::cpu, Direction::raise, 5).has_value());
  world.throttled_periods = 3;
  CHECK(world.find(Resource::cpu, Direction::raise, 1).has_value());
}

// rule: CPU-02
TEST_CASE("a second raise for throttling within ten minutes restores the original") {
  auto world = lowered_world();
  world.throttled_periods = 3;
  world.tick();
  CHECK(world.cores() == doctest::Approx(2.4));
  world.throttled_periods = 0;
  world.ticks(590);
  world.throttled_periods = 3;
  world.tick();
  CHECK(world.sample.limits == [&] {
    Limits limits = world.sample.limits;
    limits.cpu_max = world.original.cpu_max;
    limits.cpu_max_burst = world.original.cpu_max_burst;
    return limits;
  }());
}

TEST_CASE("a second raise after more than ten minutes is again by 1.2") {
  auto world = lowered_world();
  world.throttled_periods = 3;
  world.tick();
  world.recommendation.cpu = Cores{2.4};
  world.throttled_periods = 0;
  world.ticks(601);
  world.throttled_periods = 3;
  world.tick();
  CHECK(world.cores() == doctest::Approx(2.88));
}

TEST_CASE("a raise for throttling never exceeds the original") {
  auto world = lowered_world();
  world.recommendation.cpu = Cores{3.9};
  world.tick();
  world.throttled_periods = 3;
  world.tick();
  CHECK(world.sample.limits.cpu_max == world.original.cpu_max);
  CHECK(world.sample.limits.cpu_max_burst == world.original.cpu_max_burst);
}

// rule: CPU-02
TEST_CASE("use above 90 % of a lowered limit raises it") {
  auto world = lowered_world();
  world.cpu_cores = 1.8;
  CHECK_FALSE(world.find(Resource::cpu, Direction::raise, 1).has_value());
  world.cpu_cores = 1.81;
  const auto raise = world.find(Resource::cpu, Direction::raise, 1);
  REQUIRE(raise.has_value());
  CHECK(raise->reason == Reason::headroom);
}

// rule: S-05
TEST_CASE("a higher recommendation is written at once, also in an unknown phase") {
  auto world = lowered_world();
  world.input.phase = SafetyWorld::unknown();
  world.recommendation.cpu = Cores{3};
  world.recommendation.memory = Bytes{8 * kGiB - kMiB};
  world.recommendation.reason = Reason::phase_changed;
  const auto decisions = world.tick();
  REQUIRE(decisions.size() == 2);
  CHECK(decisions[0].reason == Reason::phase_changed);
  CHECK(world.cores() == doctest::Approx(3));
  CHECK(world.memory_bytes() == 8 * kGiB - kMiB + kPageBytes);
}

// rule: MEM-04
TEST_CASE("need above 90 % of a lowered limit restores the original at once") {
  auto world = lowered_world();
  world.sample.memory.anon_bytes = world.memory_bytes() / 100 * 91;
  const auto raise = world.find(Resource::memory, Direction::raise, 1);
  REQUIRE(raise.has_value());
  CHECK(raise->reason == Reason::headroom);
  CHECK(world.memory_bytes() == 8 * kGiB);
}

TEST_CASE("need that grows to the limit within two seconds restores the original at once") {
  auto world = lowered_world();
  const std::uint64_t gap = world.memory_bytes() - kGiB;
  world.sample.memory.anon_bytes = kGiB + gap / 3 - kMiB;
  CHECK_FALSE(world.find(Resource::memory, Direction::raise, 1).has_value());
  auto faster = lowered_world();
  faster.sample.memory.anon_bytes = kGiB + gap / 3 + kMiB;
  CHECK(faster.find(Resource::memory, Direction::raise, 1).has_value());
}

// rule: MEM-04
TEST_CASE("a max event restores the original at once") {
  auto world = lowered_world();
  world.sample.memory_events.max = 1;
  const auto raise = world.find(Resource::memory, Direction::raise, 1);
  REQUIRE(raise.has_value());
  CHECK(raise->reason == Reason::memory_event);
  CHECK(world.memory_bytes() == 8 * kGiB);
}

TEST_CASE("an event during a gap of samples is answered after it") {
  auto world = lowered_world();
  world.previous.reset();
  world.input.gap = true;
  world.sample.memory_events.max = 1;
  CHECK(world.find(Resource::memory, Direction::raise, 1).has_value());
}

// rule: MEM-04
TEST_CASE("an OOM under our limit quarantines memory for a day") {
  auto world = lowered_world();
  world.sample.memory_events.oom_kill = 1;
  world.tick();
  CHECK(world.memory_bytes() == 8 * kGiB);
  world.recommendation.memory = Bytes{2 * kGiB};
  CHECK_FALSE(world.lowers(Resource::memory, 400));
  CHECK(world.safety.blocked_by(Resource::memory) == Verdict::quarantined);
  world.time += std::chrono::hours(24);
  CHECK(world.lowers(Resource::memory, kLong));
}

TEST_CASE("an OOM under the original limit causes no quarantine") {
  SafetyWorld world;
  world.ticks(5);
  world.sample.memory_events.oom_kill = 1;
  world.ticks(3);
  CHECK(world.safety.blocked_by(Resource::memory) != Verdict::quarantined);
  CHECK(world.lowers(Resource::memory, 400));
}

// rule: MEM-04
TEST_CASE("full memory pressure under our limit restores the original") {
  auto world = lowered_world();
  world.sample.memory_pressure.full.avg10_ratio = 0.10;
  CHECK_FALSE(world.find(Resource::memory, Direction::raise, 1).has_value());
  world.sample.memory_pressure.full.avg10_ratio = 0.11;
  const auto raise = world.find(Resource::memory, Direction::raise, 1);
  REQUIRE(raise.has_value());
  CHECK(raise->reason == Reason::pressure);
}

// rule: MEM-07
TEST_CASE("when processes end or start, the original limits are restored") {
  auto world = lowered_world();
  world.sample.populated = false;
  world.tick();
  CHECK(world.sample.limits == world.original);
  auto started = lowered_world();
  started.apply = false;  // the restore at their end got no answer
  started.sample.populated = false;
  started.tick();
  started.ticks(2);
  started.apply = true;
  started.sample.populated = true;
  started.ticks(2);
  CHECK(started.sample.limits == started.original);
}

TEST_CASE("leaving mode enforce restores only if something was lowered") {
  auto world = lowered_world();
  world.input.mode = Mode::observe;
  const auto decisions = world.tick();
  REQUIRE(decisions.size() == 2);
  CHECK(decisions[0].reason == Reason::restored);
  CHECK(world.sample.limits == world.original);
  SafetyWorld fresh;
  fresh.input.mode = Mode::observe;
  fresh.ticks(5);
  CHECK(fresh.all.empty());
}

TEST_CASE("a raise without an answer is requested again after two seconds") {
  auto world = lowered_world();
  world.apply = false;
  world.sample.memory_events.max = 1;
  CHECK(world.find(Resource::memory, Direction::raise, 1).has_value());
  CHECK_FALSE(world.find(Resource::memory, Direction::raise, 1).has_value());
  CHECK(world.find(Resource::memory, Direction::raise, 1).has_value());
}

TEST_CASE("an event during a lowering restores as soon as the lowering is in force") {
  SafetyWorld world;
  world.apply = false;
  const auto lowering = world.find(Resource::memory, Direction::lower, kLong);
  REQUIRE(lowering.has_value());
  world.sample.memory_events.max = 1;
  world.tick();
  world.apply = true;
  world.write(*lowering);
  world.tick();
  CHECK(world.memory_bytes() == 8 * kGiB);
  CHECK(has_outcome(world, OutcomeKind::overtaken));
}

TEST_CASE("a trial without harm passes after 30 s") {
  SafetyWorld world;
  REQUIRE(world.lowers(Resource::memory, kLong));
  world.ticks(29);
  CHECK(world.outcomes.empty());
  world.tick();
  CHECK(has_outcome(world, OutcomeKind::trial_passed));
  CHECK_FALSE(has_outcome(world, OutcomeKind::trial_reverted));
}

// rule: S-06
TEST_CASE("refaults above those of the phase revert the lowering") {
  SafetyWorld world;
  REQUIRE(world.lowers(Resource::memory, kLong));
  const std::uint64_t low = world.memory_bytes();
  world.refaults = 11;  // instead of none
  world.ticks(30);
  CHECK(has_outcome(world, OutcomeKind::trial_reverted));
  CHECK(world.memory_bytes() > low);
  CHECK(world.all.back().reason == Reason::trial_failed);
}

TEST_CASE("refaults up to 20 % above those of the phase are accepted") {
  SafetyWorld world;
  world.refaults = 100;
  REQUIRE(world.lowers(Resource::memory, kLong));
  world.refaults = 120;
  world.ticks(31);
  CHECK(has_outcome(world, OutcomeKind::trial_passed));
  SafetyWorld worse;
  worse.refaults = 100;
  REQUIRE(worse.lowers(Resource::memory, kLong));
  worse.refaults = 121;
  worse.ticks(31);
  CHECK(has_outcome(worse, OutcomeKind::trial_reverted));
}

TEST_CASE("memory pressure and major faults in a trial revert it") {
  SafetyWorld pressure;
  REQUIRE(pressure.lowers(Resource::memory, kLong));
  pressure.set_pressure(0, 0.02, 0);
  pressure.ticks(31);
  CHECK(has_outcome(pressure, OutcomeKind::trial_reverted));
  SafetyWorld faults;
  REQUIRE(faults.lowers(Resource::memory, kLong));
  faults.major_faults = 20;
  faults.ticks(31);
  CHECK(has_outcome(faults, OutcomeKind::trial_reverted));
}

TEST_CASE("an event in a trial reverts it at once and doubles the cooldown") {
  SafetyWorld world;
  REQUIRE(world.lowers(Resource::memory, kLong));
  world.sample.memory_events.max = 1;
  world.tick();
  CHECK(has_outcome(world, OutcomeKind::trial_reverted));
  CHECK(world.memory_bytes() == 8 * kGiB);
  CHECK_FALSE(world.lowers(Resource::memory, 599));
  CHECK(world.lowers(Resource::memory, 2));
}

// rule: S-06
TEST_CASE("three failed trials cause a quarantine, two do not") {
  SafetyConfig config;
  config.cool_down = seconds(10);
  SafetyWorld world(config);
  for (int failed = 1; failed <= 3; ++failed) {
    REQUIRE(world.lowers(Resource::memory, 400));
    *world.sample.memory_events.max += 1;
    world.ticks(2);
    CHECK((world.safety.blocked_by(Resource::memory) == Verdict::quarantined) == (failed == 3));
  }
  CHECK_FALSE(world.lowers(Resource::memory, 1000));
}

TEST_CASE("a failed trial is forgotten after an hour without another") {
  SafetyConfig config;
  config.cool_down = seconds(10);
  SafetyWorld world(config);
  for (int failed = 1; failed <= 4; ++failed) {
    REQUIRE(world.lowers(Resource::memory, 400));
    *world.sample.memory_events.max += 1;
    world.tick();
    world.time += std::chrono::hours(1) + seconds(1);
  }
  world.ticks(kLong);
  CHECK(world.safety.blocked_by(Resource::memory) != Verdict::quarantined);
}

TEST_CASE("a failed write counts as a failed trial") {
  SafetyWorld world;
  world.apply = false;
  const auto lowering = world.find(Resource::memory, Direction::lower, kLong);
  REQUIRE(lowering.has_value());
  world.safety.written(*lowering, WriteEnd::failed, world.sample.limits, world.time);
  world.apply = true;
  CHECK_FALSE(world.lowers(Resource::memory, 599));
  CHECK(has_outcome(world, OutcomeKind::write_failed));
  CHECK(world.lowers(Resource::memory, 2));
}

TEST_CASE("a lowering overtaken by a raise is not a failed trial") {
  SafetyWorld world;
  world.apply = false;
  const auto lowering = world.find(Resource::memory, Direction::lower, kLong);
  REQUIRE(lowering.has_value());
  world.safety.written(*lowering, WriteEnd::overtaken, world.sample.limits, world.time);
  world.apply = true;
  CHECK(world.lowers(Resource::memory, 120));
  CHECK(has_outcome(world, OutcomeKind::overtaken));
  CHECK_FALSE(has_outcome(world, OutcomeKind::write_failed));
}

TEST_CASE("a raise for another reason ends a trial without a failure") {
  SafetyWorld world;
  world.recommendation.memory.reset();
  REQUIRE(world.lowers(Resource::cpu, kLong));
  world.recommendation.cpu = Cores{4};
  world.tick();
  CHECK(has_outcome(world, OutcomeKind::overtaken));
  world.recommendation.cpu = Cores{1};
  CHECK(world.lowers(Resource::cpu, 61));
}

TEST_CASE("a GPU restores a lowered quota at once, but not memory") {
  auto world = lowered_world();
  const auto memory = world.memory_bytes();
  world.input.gpu = true;
  const auto raise = world.find(Resource::cpu, Direction::raise, 1);
  REQUIRE(raise.has_value());
  CHECK(raise->reason == Reason::gpu_seen);
  CHECK(world.sample.limits.cpu_max == world.original.cpu_max);
  CHECK(world.sample.limits.cpu_max_burst == world.original.cpu_max_burst);
  world.ticks(5);
  CHECK(world.memory_bytes() <= memory);
}

TEST_CASE("a GPU does not raise a quota that was never lowered") {
  SafetyWorld world;
  world.tick();
  world.input.gpu = true;
  world.sample.limits.cpu_max->quota = Microseconds{50'000};
  world.ticks(kLong);
  CHECK(world.cores() == 0.5);
}

// rule: S-08
TEST_CASE("a foreign limit becomes the original, and nothing is lowered for 15 minutes") {
  auto world = lowered_world();
  world.sample.limits.memory_max = MemoryLimit{Bytes{6 * kGiB}};
  world.recommendation.memory = Bytes{2 * kGiB};
  world.tick();
  CHECK(world.safety.original().memory_max == MemoryLimit{Bytes{6 * kGiB}});
  CHECK(world.safety.blocked_by(Resource::memory) == Verdict::standing_down);
  CHECK_FALSE(world.lowers(Resource::memory, 15 * 60 - 1));
  CHECK(world.lowers(Resource::memory, 2));
}

TEST_CASE("a foreign limit below ours becomes the original and is not raised") {
  auto world = lowered_world();
  world.sample.limits.cpu_max->quota = Microseconds{50'000};
  world.recommendation.cpu = Cores{4};
  world.ticks(20);
  CHECK(world.cores() == 0.5);
}

TEST_CASE("an original restored without a reload counts as foreign and blocks for 15 minutes") {
  auto world = lowered_world();
  world.sample.limits = world.original;
  world.recommendation.memory = Bytes{2 * kGiB};
  CHECK_FALSE(world.lowers(Resource::memory, 15 * 60));
  CHECK(world.lowers(Resource::memory, 2));
}

// rule: S-08
TEST_CASE("an original restored within seconds of a reload is lowered again after a pause") {
  auto world = lowered_world();
  world.recommendation.memory = Bytes{2 * kGiB};
  world.input.reload = world.time;
  world.sample.limits = world.original;
  world.tick();
  CHECK(world.safety.blocked_by(Resource::memory) == Verdict::silently_reverted);
  CHECK_FALSE(world.lowers(Resource::memory, 29));
  CHECK(world.lowers(Resource::memory, 35));
}

// rule: S-08
TEST_CASE("after three silent resets per hour we lower again, after the fourth we yield") {
  auto world = lowered_world();
  world.recommendation.memory = Bytes{2 * kGiB};
  const MonotonicTime begin = world.time;
  for (int revert = 1; revert <= 4; ++revert) {
    world.input.reload = world.time;
    world.sample.limits = world.original;
    world.tick();
    const bool again = world.lowers(Resource::memory, 200);
    CHECK(again == (revert <= 3));
  }
  CHECK(world.lowers(Resource::memory, 3600));
  CHECK(world.time - begin >= std::chrono::hours(1));
}

TEST_CASE("a reset read in two ticks, knob by knob, counts once") {
  auto world = lowered_world();
  world.recommendation.memory = Bytes{2 * kGiB};
  for (int revert = 1; revert <= 3; ++revert) {
    REQUIRE(world.sample.limits.memory_high != world.original.memory_high);
    world.recommendation.cpu = Cores{1};
    REQUIRE((world.cores() < 4 || world.lowers(Resource::cpu, kLong)));
    world.input.reload = world.time;
    world.sample.limits.memory_high = world.original.memory_high;
    world.tick();
    world.sample.limits = world.original;
    world.tick();
    CHECK(world.lowers(Resource::memory, 200));
  }
}

TEST_CASE("an earlier value of ours in the file is not foreign") {
  auto world = lowered_world();
  const Limits first = world.sample.limits;
  world.recommendation.cpu = Cores{1};
  REQUIRE(world.lowers(Resource::cpu, kLong));
  world.ticks(2);
  world.sample.limits.cpu_max = first.cpu_max;  // an older write appears again
  world.sample.limits.cpu_max_burst = first.cpu_max_burst;
  world.tick();
  CHECK(world.safety.original().cpu_max == world.original.cpu_max);
  CHECK(world.safety.blocked_by(Resource::cpu) != Verdict::standing_down);
}

TEST_CASE("a sample older than our last write is not a foreign change") {
  SafetyWorld world;
  world.apply = false;
  const auto lowering = world.find(Resource::memory, Direction::lower, kLong);
  REQUIRE(lowering.has_value());
  Limits in_force = world.sample.limits;
  in_force.memory_high = lowering->new_limits.memory_high;
  world.safety.written(*lowering, WriteEnd::done, in_force, world.time + seconds(2));
  world.tick();  // its limits were read a second before the write ended
  CHECK(world.safety.blocked_by(Resource::memory) != Verdict::standing_down);
}

namespace {

// The fast path restores the original between two ticks. The core reports it like this.
void guard_restores(SafetyWorld& world, Resource resource, Reason reason) {
  Decision decision;
  decision.decision_id = 1'000'000;
  decision.time = world.time;
  decision.container = world.sample.id;
  decision.resource = resource;
  decision.direction = Direction::raise;
  decision.reason = reason;
  decision.old_limits = world.sample.limits;
  decision.new_limits = world.sample.limits;
  if (resource == Resource::cpu) decision.new_limits.cpu_max = world.original.cpu_max;
  else decision.new_limits.memory_high = world.original.memory_high;
  world.write(decision);
}

}  // namespace

// rule: CPU-06
TEST_CASE("what tasks waited before the fast path restored the quota counts") {
  auto world = lowered_world();
  guard_restores(world, Resource::cpu, Reason::throttled);
  world.throttled_usec = 1'000'000;
  world.tick();
  world.throttled_usec = 0;
  world.tick();
  CHECK(world.safety.blocked_by(Resource::cpu) == Verdict::cool_down);
  CHECK_FALSE(world.lowers(Resource::cpu, 100));
  CHECK(world.lowers(Resource::cpu, 400));
}

TEST_CASE("throttling that the fast path answered by a fifth does not restore the original") {
  auto world = lowered_world();
  world.cpu_cores = 1;
  Decision raise;
  raise.decision_id = 1'000'000;
  raise.container = world.sample.id;
  raise.resource = Resource::cpu;
  raise.direction = Direction::raise;
  raise.reason = Reason::throttled;
  raise.old_limits = raise.new_limits = world.sample.limits;
  raise.new_limits.cpu_max->quota = Microseconds{240'000};
  // In the middle of an interval; the throttling was before it.
  world.sample.limits.cpu_max = raise.new_limits.cpu_max;
  world.safety.written(raise, WriteEnd::done, world.sample.limits,
                      world.time + std::chrono::milliseconds(500));
  world.throttled_usec = 240'000;
  world.throttled_periods = 4;
  world.tick();
  world.throttled_usec = world.throttled_periods = 0;
  world.ticks(3);
  CHECK(world.cores() == doctest::Approx(2.4));
  world.throttled_usec = 240'000;
  world.ticks(2);
  CHECK(world.cores() == doctest::Approx(4));
}

TEST_CASE("throttling right after a raise counts, regardless of nanoseconds in the interval") {
  for (int odd = -25; odd <= 25; ++odd) {
    CAPTURE(odd);
    auto world = lowered_world();
    world.throttled_periods = 3;
    world.tick();
    REQUIRE(world.cores() == doctest::Approx(2.4));
    world.interval += std::chrono::nanoseconds(odd);
    world.tick();
    CHECK(world.cores() == doctest::Approx(4));
  }
}

TEST_CASE("a raise by the fast path in a trial reverts it and doubles the cooldown") {
  SafetyWorld world;
  REQUIRE(world.lowers(Resource::memory, kLong));
  guard_restores(world, Resource::memory, Reason::memory_event);
  world.tick();
  CHECK(has_outcome(world, OutcomeKind::trial_reverted));
  CHECK_FALSE(world.lowers(Resource::memory, 598));
  CHECK(world.lowers(Resource::memory, 3));
}

TEST_CASE("an OOM that the fast path answered first still counts against our limit") {
  auto world = lowered_world();
  guard_restores(world, Resource::memory, Reason::memory_event);
  world.sample.memory_events.oom_kill = 1;
  world.tick();
  world.recommendation.memory = Bytes{2 * kGiB};
  CHECK_FALSE(world.lowers(Resource::memory, 700));
  CHECK(world.safety.blocked_by(Resource::memory) == Verdict::quarantined);
}

// rule: MEM-05
TEST_CASE("a stall ended by the fast path quarantines memory for half an hour, but not CPU") {
  auto world = lowered_world();
  world.recommendation.memory = Bytes{2 * kGiB};
  guard_restores(world, Resource::memory, Reason::stalled);
  CHECK_FALSE(world.lowers(Resource::memory, 1799));
  CHECK(world.safety.blocked_by(Resource::memory) == Verdict::quarantined);
  CHECK(world.safety.blocked_by(Resource::cpu) != Verdict::quarantined);
  CHECK(world.lowers(Resource::memory, 120));
}

TEST_CASE("a stall does not shorten the quarantine of an OOM") {
  auto world = lowered_world();
  world.sample.memory_events.oom_kill = 1;
  world.tick();
  world.recommendation.memory = Bytes{2 * kGiB};
  guard_restores(world, Resource::memory, Reason::stalled);
  CHECK_FALSE(world.lowers(Resource::memory, 1900));
}

TEST_CASE("a requested restore counts as no failure") {
  auto world = lowered_world();
  world.recommendation.memory = Bytes{2 * kGiB};
  guard_restores(world, Resource::memory, Reason::restored);
  CHECK(world.lowers(Resource::memory, 120));
}
