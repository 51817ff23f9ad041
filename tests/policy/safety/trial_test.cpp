// Each measure of a trial reverts a lowering by itself, compared with the same phase.
#include "policy/safety/trial.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "tests/policy/safety/safety_world.h"

using namespace cgphase;
using std::chrono::seconds;

namespace {

// A world in which only `resource` has just been lowered.
SafetyWorld in_trial(Resource resource, const std::function<void(SafetyWorld&)>& before = {}) {
  SafetyWorld world;
  if (resource == Resource::cpu) world.recommendation.memory.reset();
  else world.recommendation.cpu.reset();
  if (before) before(world);
  REQUIRE(world.lowers(resource, kLong));
  return world;
}

// How the trial ended: "" while it runs, "passed", or the measure that failed.
std::string end_of_trial(SafetyWorld& world) {
  world.ticks(31);
  if (world.outcomes.empty()) return "";
  const Outcome& outcome = world.outcomes.front();
  if (outcome.kind == OutcomeKind::trial_passed) return "passed";
  REQUIRE(outcome.kind == OutcomeKind::trial_reverted);
  return outcome.detail.substr(0, outcome.detail.find_first_of("0123456789") - 1);
}

std::string reverted_by(Resource resource, const std::function<void(SafetyWorld&)>& harm) {
  SafetyWorld world = in_trial(resource);
  const Limits lowered = world.sample.limits;
  harm(world);
  const std::string end = end_of_trial(world);
  CHECK((world.sample.limits == lowered) == (end == "passed"));
  return end;
}

}  // namespace

TEST_CASE("CPU pressure reverts a trial of the CPU, but not one of memory") {
  const auto busy = [](SafetyWorld& world) { world.set_pressure(0.11, 0, 0); };
  CHECK(reverted_by(Resource::cpu, busy) == "cpu stall");
  CHECK(reverted_by(Resource::memory, busy) == "passed");
  CHECK(reverted_by(Resource::cpu, [](SafetyWorld& world) { world.set_pressure(0.10, 0, 0); }) ==
        "passed");
}

TEST_CASE("memory pressure reverts a trial") {
  CHECK(reverted_by(Resource::memory, [](SafetyWorld& world) {
          world.set_pressure(0, 0.011, 0);
        }) == "memory stall");
}

TEST_CASE("I/O pressure reverts a trial") {
  CHECK(reverted_by(Resource::memory, [](SafetyWorld& world) {
          world.set_pressure(0, 0, 0.011);
        }) == "io stall");
}

TEST_CASE("pressure is computed from the kernel's totals if they exist") {
  SafetyWorld world = in_trial(Resource::memory, [](SafetyWorld& fresh) {
    fresh.sample.memory_pressure.some.total_usec = 0;
  });
  for (int i = 0; i < 31; ++i) {
    *world.sample.memory_pressure.some.total_usec += 20'000;  // 2 %; the average stays at 0
    world.tick();
  }
  REQUIRE_FALSE(world.outcomes.empty());
  CHECK(world.outcomes.front().detail.starts_with("memory stall 0.02"));
}

// The kernel updates the totals every 2 s, however often they are read.
TEST_CASE("totals that grow only in every second tick are not an intermittent stall") {
  // A limit of 1 % of the time. `tells`: whether the trial begins with a tick whose totals grew.
  const auto end = [](std::uint64_t usec, bool tells) {
    bool tick_tells = tells;
    const auto pass = [&](SafetyWorld& world, std::uint64_t growth) {
      if (tick_tells) *world.sample.memory_pressure.some.total_usec += growth;
      tick_tells = !tick_tells;
      world.tick();
    };
    SafetyWorld world;
    world.recommendation.cpu.reset();
    world.sample.memory_pressure.some.total_usec = 0;
    REQUIRE(world.lowers(Resource::memory, kLong));
    for (int i = 0; i < 31; ++i) pass(world, usec);
    REQUIRE_FALSE(world.outcomes.empty());
    return world.outcomes.front().detail;
  };
  for (const bool tells : {true, false}) {
    CAPTURE(tells);
    CHECK(end(24'000, tells).starts_with("memory stall 0.012, before 0"));
    CHECK(end(16'000, tells).ends_with("nothing worse than before"));
  }
}

TEST_CASE("refaults and major faults revert a trial") {
  CHECK(reverted_by(Resource::memory, [](SafetyWorld& world) { world.refaults = 11; }) ==
        "refaults");
  CHECK(reverted_by(Resource::memory, [](SafetyWorld& world) { world.major_faults = 11; }) ==
        "major faults");
}

TEST_CASE("throttling reverts a trial before it ends") {
  SafetyWorld world = in_trial(Resource::cpu);
  world.throttled_usec = 30'000;  // 3 %
  world.ticks(5);
  REQUIRE_FALSE(world.outcomes.empty());
  CHECK(world.outcomes.front().kind == OutcomeKind::trial_reverted);
  CHECK(world.outcomes.front().detail == "raised: throttled");
}

namespace {

// How a trial of `resource` ends if `harm` occurs, in a phase that uses `usual` cores, and `quiet`
// cores in each tenth tick.
std::string end_of_progress(Resource resource, double usual, double quiet,
                            const std::function<void(SafetyWorld&)>& harm) {
  SafetyWorld world;
  world.input.mode = Mode::advise;
  for (int i = 0; i < kLong; ++i) {
    world.cpu_cores = i % 10 == 0 ? quiet : usual;
    world.tick();
  }
  world.input.mode = Mode::enforce;
  world.cpu_cores = usual;
  if (resource == Resource::cpu) world.recommendation.memory.reset();
  else world.recommendation.cpu.reset();
  REQUIRE(world.lowers(resource, 1));
  harm(world);
  return end_of_trial(world);
}

std::function<void(SafetyWorld&)> progress_of(double cores) {
  return [cores](SafetyWorld& world) { world.cpu_cores = cores; };
}

}  // namespace

TEST_CASE("falling CPU progress while tasks are delayed reverts") {
  const auto held_back = [](double cores) {
    return [cores](SafetyWorld& world) {
      world.cpu_cores = cores;
      world.throttled_usec = 1000;
    };
  };
  CHECK(end_of_progress(Resource::cpu, 0.8, 0.3, held_back(0.63)) == "cpu progress");
  CHECK(end_of_progress(Resource::cpu, 0.8, 0.3, held_back(0.65)) == "passed");
}

TEST_CASE("CPU progress below the quiet times of the phase reverts without other signs") {
  for (const Resource resource : {Resource::cpu, Resource::memory}) {
    CHECK(end_of_progress(resource, 0.8, 0.8, progress_of(0.63)) == "cpu progress");
    CHECK(end_of_progress(resource, 0.8, 0.8, progress_of(0.65)) == "passed");
    CHECK(end_of_progress(resource, 0.8, 0.5, progress_of(0.39)) == "cpu progress");
  }
}

TEST_CASE("a failed trial reports the CPU time that it was compared with") {
  const auto reported = [](std::uint64_t throttled_usec) {
    SafetyWorld world;
    world.input.mode = Mode::advise;
    for (int i = 0; i < kLong; ++i) {
      world.cpu_cores = i % 10 == 0 ? 0.5 : 0.8;
      world.tick();
    }
    world.input.mode = Mode::enforce;
    world.recommendation.memory.reset();
    world.cpu_cores = 0.8;
    REQUIRE(world.lowers(Resource::cpu, 1));
    world.throttled_usec = throttled_usec;
    world.cpu_cores = 0.39;
    REQUIRE(end_of_trial(world) == "cpu progress");
    return world.outcomes.front().detail;
  };
  CHECK(reported(1000) == "cpu progress 0.39 cores, before 0.8");
  CHECK(reported(0) == "cpu progress 0.39 cores, before 0.5 in all but one tick in twenty");
}

TEST_CASE("an ordinary quiet time of a bursty phase is no harm, nor is an idle container") {
  CHECK(end_of_progress(Resource::memory, 0.8, 0.5, progress_of(0.41)) == "passed");
  CHECK(end_of_progress(Resource::memory, 0.8, 0.01, progress_of(0.01)) == "passed");
  CHECK(end_of_progress(Resource::memory, 0.04, 0.04, progress_of(0.01)) == "passed");
}

// rule: S-06
TEST_CASE("GPU utilisation that falls by more than five points in a trial reverts it") {
  const auto falls_to = [](Resource resource, std::optional<double> ratio) {
    SafetyWorld world = in_trial(resource, [](SafetyWorld& fresh) {
      fresh.sample.gpu.utilisation_ratio = 0.8;
    });
    world.sample.gpu.utilisation_ratio = ratio;
    return end_of_trial(world);
  };
  for (const Resource resource : {Resource::cpu, Resource::memory}) {
    CHECK(falls_to(resource, 0.74) == "gpu utilisation");
    CHECK(falls_to(resource, 0.76) == "passed");
    CHECK(falls_to(resource, std::nullopt) == "passed");  // no longer reported
  }
}

TEST_CASE("a trial lasts at least until its minimum number of samples") {
  SafetyWorld world;
  world.interval = seconds(60);
  world.recommendation.memory.reset();
  REQUIRE(world.lowers(Resource::cpu, kLong));
  world.ticks(2);
  CHECK(world.outcomes.empty());
  world.ticks(2);
  REQUIRE(world.outcomes.size() == 1);
  CHECK(world.outcomes[0].kind == OutcomeKind::trial_passed);
}

TEST_CASE("a max event and an oom event in a trial revert it at once") {
  for (const bool oom : {false, true}) {
    SafetyWorld world = in_trial(Resource::memory);
    *(oom ? world.sample.memory_events.oom_kill : world.sample.memory_events.max) += 1;
    world.tick();
    REQUIRE_FALSE(world.outcomes.empty());
    CHECK(world.outcomes.front().kind == OutcomeKind::trial_reverted);
    CHECK(world.memory_bytes() == 8 * kGiB);
  }
}

TEST_CASE("a trial is compared with earlier times of the same phase only") {
  // Phase 1 always refaults, phase 0 never does.
  const auto both = [](SafetyWorld& world) {
    world.input.mode = Mode::advise;
    for (const int phase : {0, 1}) {
      world.input.phase = SafetyWorld::known(phase);
      world.refaults = phase == 0 ? 0 : 100;
      world.ticks(30);
    }
    world.input.mode = Mode::enforce;
  };
  SafetyWorld same = in_trial(Resource::memory, both);
  CHECK(same.input.phase.index == 1);
  CHECK(end_of_trial(same) == "passed");
  SafetyWorld other = in_trial(Resource::memory, [&](SafetyWorld& world) {
    both(world);
    world.input.phase = SafetyWorld::known(0);
    world.refaults = 0;
  });
  other.refaults = 100;  // as in phase 1: not normal in phase 0
  CHECK(end_of_trial(other) == "refaults");
}

TEST_CASE("the cooldown after a measured failure is two minutes for memory, ten for the quota") {
  for (const auto& [resource, minutes] : {std::pair(Resource::memory, 2), {Resource::cpu, 10}}) {
    SafetyWorld world = in_trial(resource);
    resource == Resource::cpu ? world.set_pressure(0.11, 0, 0) : world.set_pressure(0, 0.02, 0);
    while (world.outcomes.empty()) world.tick();
    REQUIRE(world.outcomes.front().kind == OutcomeKind::trial_reverted);
    world.set_pressure(0, 0, 0);
    CHECK_FALSE(world.lowers(resource, minutes * 60 - 1));
    CHECK(world.lowers(resource, 30));
  }
}

TEST_CASE("the cooldown is 5 min after an event, 10 and 20 after failed trials, then a "
          "quarantine") {
  SafetyWorld world;
  world.recommendation.cpu.reset();
  world.recommendation.earlier_runs = 3;  // one step reaches the recommendation
  while (world.outcomes.empty()) world.tick();
  REQUIRE(world.outcomes.front().kind == OutcomeKind::trial_passed);
  *world.sample.memory_events.max += 1;  // in no trial
  world.tick();
  for (const int minutes : {5, 10, 20}) {
    CAPTURE(minutes);
    CHECK_FALSE(world.lowers(Resource::memory, minutes * 60 - 1));
    CHECK(world.safety.blocked_by(Resource::memory) == Verdict::cool_down);
    REQUIRE(world.lowers(Resource::memory, 2));
    *world.sample.memory_events.max += 1;
    world.tick();
    CHECK(world.outcomes.back().kind == OutcomeKind::trial_reverted);
  }
  CHECK_FALSE(world.lowers(Resource::memory, 3000));
  CHECK(world.safety.blocked_by(Resource::memory) == Verdict::quarantined);
}
