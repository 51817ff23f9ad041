// Reasons to restore while a lowering has no answer yet, or while the sample is older than its
// answer. Also the numbers that a decision reports.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/policy/safety/safety_world.h"

using namespace cgphase;
using std::chrono::seconds;

namespace {

// A lowering of `resource` that was requested and is not answered yet.
Decision ask_lowering(SafetyWorld& world, Resource resource) {
  world.apply = false;
  const auto lowering = world.find(resource, Direction::lower, 1200);
  REQUIRE(lowering.has_value());
  return *lowering;
}

// Requests a lowering of memory. It is reported as written before the next tick, whose files were
// read before the write ended. `in_force` receives the limits after the write.
Decision written_after_sample(SafetyWorld& world, Limits& in_force) {
  world.recommendation.cpu.reset();
  const Decision lowering = ask_lowering(world, Resource::memory);
  in_force = world.sample.limits;
  in_force.memory_high = lowering.new_limits.memory_high;
  world.safety.written(lowering, WriteEnd::done, in_force, world.time + seconds(1));
  return lowering;
}

// A world in which both resources were lowered in the last tick.
SafetyWorld in_both_trials() {
  SafetyWorld world;
  world.recommendation.cpu = Cores{2};
  REQUIRE(world.lowers(Resource::memory, kLong));
  REQUIRE(world.cores() == doctest::Approx(2));
  return world;
}

// Sets a foreign limit above the one in force.
void change_limit(SafetyWorld& world, Resource resource) {
  if (resource == Resource::cpu) world.sample.limits.cpu_max->quota = Microseconds{300'000};
  else world.sample.limits.memory_max = MemoryLimit{Bytes{7 * kGiB + 512 * kMiB}};
}

Resource resource_of(const SafetyWorld& world, const Outcome& outcome) {
  const auto decision = std::ranges::find(world.all, outcome.decision_id, &Decision::decision_id);
  REQUIRE(decision != world.all.end());
  return decision->resource;
}

bool raised_for(const SafetyWorld& world, Resource resource, Reason reason) {
  return std::ranges::any_of(world.all, [&](const Decision& decision) {
    return decision.resource == resource && decision.direction == Direction::raise &&
           decision.verdict == Verdict::allowed && decision.reason == reason;
  });
}

}  // namespace

// rule: S-08
TEST_CASE("an update that is read in two ticks is one change, and no further reset") {
  auto world = lowered_world();
  for (int reset = 0; reset < world.config.reapplies_per_hour; ++reset) {
    world.sample.limits.memory_high = world.original.memory_high;
    world.input.reload = world.time + std::chrono::seconds(1);
    REQUIRE(world.lowers(Resource::memory, 5 * kLong));
  }
  world.sample.limits.cpu_max->quota = Microseconds{350'000};
  world.tick();
  world.sample.limits.memory_high = world.original.memory_high;
  world.tick();
  world.ticks(14 * 60);
  CHECK(world.safety.blocked_by(Resource::memory) == Verdict::standing_down);
  CHECK(world.lowers(Resource::memory, 3 * 60));
}

TEST_CASE("a GPU seen during a lowering of the quota restores it as soon as it is in force") {
  SafetyWorld world;
  world.recommendation.memory.reset();
  const Decision lowering = ask_lowering(world, Resource::cpu);
  world.input.gpu = true;
  world.ticks(3);
  CHECK_FALSE(raised_for(world, Resource::cpu, Reason::gpu_seen));
  world.apply = true;
  world.write(lowering);
  REQUIRE(world.cores() < 4);
  world.tick();
  CHECK(raised_for(world, Resource::cpu, Reason::gpu_seen));
  CHECK(world.cores() == 4);
  CHECK_FALSE(world.lowers(Resource::cpu, 1200));
}

TEST_CASE("a former original that somebody else sets again is foreign, although we had restored "
          "it") {
  SafetyWorld world;
  world.recommendation.cpu.reset();
  REQUIRE(world.lowers(Resource::memory, kLong));
  world.sample.memory_events.max = 1;
  world.ticks(2);
  REQUIRE(world.memory_bytes() == 8 * kGiB);
  for (const std::uint64_t gib : {3, 8}) {
    world.ticks(20);
    world.sample.limits.memory_max = MemoryLimit{Bytes{gib * kGiB}};
    world.tick();
    CHECK(world.safety.original().memory_max == world.sample.limits.memory_max);
    CHECK(world.safety.blocked_by(Resource::memory) == Verdict::standing_down);
  }
}

TEST_CASE("a conflicting writer detected during a lowering has that lowering restored") {
  SafetyWorld world;
  world.recommendation.cpu = Cores{2};
  const auto set_another = [&](std::uint64_t gib) {
    world.sample.limits.memory_max = MemoryLimit{Bytes{gib * kGiB}};
  };
  for (const std::uint64_t gib : {6, 7}) {
    REQUIRE(world.lowers(Resource::memory, 1200));
    world.ticks(15);  // longer than safety.silent_revert
    set_another(gib);
    world.ticks(2);
  }
  REQUIRE(world.lowers(Resource::memory, 1200));
  world.ticks(100);
  world.recommendation.cpu = Cores{1};
  const Decision lowering = ask_lowering(world, Resource::cpu);
  set_another(6);
  world.ticks(2);
  REQUIRE(world.safety.blocked_by(Resource::cpu) == Verdict::rival);
  world.apply = true;
  world.write(lowering);
  REQUIRE(world.cores() < 2);
  world.ticks(4);  // the first raise gets no answer
  CHECK(raised_for(world, Resource::cpu, Reason::another_manager));
  CHECK(world.cores() == 4);
  CHECK(world.memory_bytes() == 6 * kGiB);
}

TEST_CASE("an event in a sample older than our write restores in the next tick") {
  SafetyWorld world;
  Limits in_force;
  written_after_sample(world, in_force);
  *world.sample.memory_events.max += 1;
  world.apply = true;
  world.tick();
  CHECK(world.memory_bytes() == 8 * kGiB);
  CHECK_FALSE(raised_for(world, Resource::memory, Reason::memory_event));
  world.sample.limits = in_force;
  world.tick();
  CHECK(raised_for(world, Resource::memory, Reason::memory_event));
  CHECK(world.memory_bytes() == 8 * kGiB);
}

// rule: S-08
TEST_CASE("a limit that the owner sets beside our write is not overwritten by the old original") {
  for (const Resource resource : {Resource::cpu, Resource::memory}) {
    CAPTURE(static_cast<int>(resource));
    SafetyWorld world;
    world.recommendation.cpu = Cores{1};
    if (resource == Resource::memory) world.recommendation.cpu.reset();
    else world.recommendation.memory.reset();
    const Decision lowering = ask_lowering(world, resource);
    world.safety.written(lowering, WriteEnd::done, lowering.new_limits, world.time + seconds(1));
    world.sample.limits = lowering.new_limits;
    change_limit(world, resource);
    const Limits of_owner = world.sample.limits;
    world.input.gpu = true;  // a reason to restore the quota
    *world.sample.memory_events.max += 1;
    world.apply = true;
    world.tick();
    CHECK(world.sample.limits == of_owner);
    world.ticks(20);
    CHECK(world.sample.limits.cpu_max == of_owner.cpu_max);
    CHECK(world.sample.limits.memory_max == of_owner.memory_max);
    CHECK(world.safety.original().memory_max == of_owner.memory_max);
    CHECK(world.memory_bytes() == of_owner.memory_max->bytes->value);
  }
}

TEST_CASE("a sample older than our write ends no trial") {
  SafetyWorld world;
  Limits in_force;
  const Decision lowering = written_after_sample(world, in_force);
  world.tick();
  CHECK(world.memory_bytes() == 8 * kGiB);  // as before
  world.sample.limits = in_force;
  world.apply = true;
  world.ticks(40);
  const auto of_it = [&](const Outcome& one) { return one.decision_id == lowering.decision_id; };
  const auto outcome = std::ranges::find_if(world.outcomes, of_it);
  REQUIRE(outcome != world.outcomes.end());
  CHECK(outcome->kind == OutcomeKind::trial_passed);
}

TEST_CASE("a foreign change of one resource ends only the trial of that resource") {
  for (const Resource changed : {Resource::cpu, Resource::memory}) {
    CAPTURE(static_cast<int>(changed));
    SafetyWorld world = in_both_trials();
    change_limit(world, changed);
    world.tick();
    REQUIRE(world.outcomes.size() == 1);
    CHECK(world.outcomes[0].kind == OutcomeKind::overtaken);
    CHECK(resource_of(world, world.outcomes[0]) == changed);
    CHECK(world.safety.blocked_by(changed) == Verdict::standing_down);
    world.ticks(30);
    REQUIRE(world.outcomes.size() == 2);
    CHECK(world.outcomes[1].kind == OutcomeKind::trial_passed);
    CHECK(resource_of(world, world.outcomes[1]) != changed);
  }
}

TEST_CASE("a trial that fails after a foreign change of the other resource is reverted") {
  SafetyWorld world = in_both_trials();
  change_limit(world, Resource::cpu);
  world.refaults = 11;  // instead of none
  world.ticks(31);
  CHECK(raised_for(world, Resource::memory, Reason::trial_failed));
  CHECK(world.memory_bytes() == 8 * kGiB);
  CHECK(world.cores() == 3);
  world.refaults = 0;
  CHECK_FALSE(world.lowers(Resource::memory, 800));
}

TEST_CASE("a foreign burst ends the trial of the CPU") {
  SafetyWorld world = in_both_trials();
  world.sample.limits.cpu_max_burst = Microseconds{12'345};
  world.tick();
  REQUIRE(world.outcomes.size() == 1);
  CHECK(world.outcomes[0].kind == OutcomeKind::overtaken);
  CHECK(resource_of(world, world.outcomes[0]) == Resource::cpu);
}

TEST_CASE("a decision contains the numbers that the safety rules knew") {
  SafetyWorld world;
  world.set_pressure(0.05, 0.0005, 0.0002);
  world.sample.memory_current = Bytes{3 * kGiB};
  world.sample.memory.inactive_file_bytes = 2 * kGiB;
  world.cpu_cores = 0.5;
  world.recommendation.earlier_runs = 2;
  const auto cpu = world.find(Resource::cpu, Direction::lower, kLong);
  REQUIRE(cpu.has_value());
  CHECK(cpu->evidence[Fact::cpu_cores] == doctest::Approx(0.5));
  CHECK(cpu->evidence[Fact::throttled_ratio] == 0);
  CHECK(cpu->evidence[Fact::cpu_some_avg10] == 0.05);
  CHECK(cpu->evidence[Fact::io_some_avg10] == 0.0002);
  CHECK(cpu->evidence[Fact::earlier_runs] == 2);
  REQUIRE(cpu->evidence[Fact::floor]);
  CHECK(*cpu->evidence[Fact::floor] <= cpu->new_limits.cpu_cores()->value);
  const auto memory = world.find(Resource::memory, Direction::lower, kLong);
  REQUIRE(memory.has_value());
  CHECK(memory->evidence[Fact::memory_need_bytes] == kGiB);
  CHECK(memory->evidence[Fact::memory_peak_need_bytes] == kGiB);
  CHECK(memory->evidence[Fact::memory_current_bytes] == 3.0 * kGiB);
  CHECK(memory->evidence[Fact::memory_growth_bytes_per_sec] == 0);
  CHECK(memory->evidence[Fact::memory_some_avg10] == 0.0005);
  CHECK_FALSE(memory->evidence[Fact::memory_full_avg10]);
  REQUIRE(memory->evidence[Fact::floor]);
  CHECK(*memory->evidence[Fact::floor] == doctest::Approx(
      kGiB + 0.1 * static_cast<double>(memory->old_limits.memory_bytes()->value)));
}

TEST_CASE("the removal of a container ends its trial") {
  SafetyWorld world;
  REQUIRE(world.lowers(Resource::memory, kLong));
  world.safety.vanished(world.time);
  const auto outcomes = world.safety.take_outcomes();
  REQUIRE_FALSE(outcomes.empty());
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.kind == OutcomeKind::overtaken);
    CHECK(outcome.detail == "the container is gone");
  }
}

TEST_CASE("a quarantine reported late restores lowered limits and blocks further lowering") {
  SafetyWorld world;
  REQUIRE(world.lowers(Resource::memory, 2 * kLong));
  world.tick();
  world.input.quarantine_left = {std::chrono::hours(24), std::chrono::hours(24)};
  world.tick();
  world.input.quarantine_left = {};
  world.ticks(2);
  CHECK(world.sample.limits == world.original);
  CHECK(world.safety.blocked_by(Resource::memory) == Verdict::quarantined);
  CHECK_FALSE(world.lowers(Resource::memory, kLong));
}

TEST_CASE("limits written just after a container starts are its originals, later ones are "
          "foreign") {
  SafetyWorld world;
  world.ticks(2);
  world.original = {};
  world.sample.limits.memory_max = MemoryLimit{Bytes{4 * kGiB}};
  world.tick();
  CHECK(world.safety.blocked_by(Resource::memory) != Verdict::standing_down);
  CHECK(world.safety.original().memory_bytes()->value == 4 * kGiB);
  world.ticks(static_cast<int>(world.config.start_up.count()));
  world.sample.limits.memory_max = MemoryLimit{Bytes{5 * kGiB}};
  world.tick();
  CHECK(world.safety.blocked_by(Resource::memory) == Verdict::standing_down);
}
