#include <doctest/doctest.h>

#include <limits>

#include "tests/policy/policy_run.h"

using namespace cgphase;

namespace {

// Phase 0: 1 +- 0.25 cores, 100 +- 10 MiB. Phase 1 has no statistics.
PolicyEnvironment two_phases() {
  PolicyEnvironment around;
  around.phase_statistics = std::make_shared<std::vector<PhaseStatistics>>(
      std::vector<PhaseStatistics>{{500, 1, 0.25, 100 * kMib, 10 * kMib}, {}});
  return around;
}

void feed_phase(PolicyRun& run, PhaseState state, int index) {
  Observation observation = run.observation(1);
  observation.phase = {state, index};
  run.policy->observe(observation);
}

}  // namespace

TEST_CASE("AI4DL's policies recommend mean and two deviations of the phase") {
  for (const auto name : {"ai4dl-phase", "ai4dl-phase-compat"}) {
    PolicyRun run(name, {}, two_phases());
    feed_phase(run, PhaseState::known, 0);
    CHECK(run.cores() == 1.5);  // 1 + 2 x 0.25
    CHECK(run.mib() == 120);    // 100 + 2 x 10
    CHECK(run.allocation().cpu_sample_count == 500);
  }
}

TEST_CASE("AI4DL's policies have no opinion about unknown phases") {
  PolicyRun run("ai4dl-phase", {}, two_phases());
  CHECK_FALSE(run.allocation().cpu.has_value());
  const auto silent = [&](PhaseState state, int index) {
    feed_phase(run, state, index);
    return !run.allocation().cpu && !run.allocation().memory;
  };
  CHECK(silent(PhaseState::unknown, 0));
  CHECK(silent(PhaseState::not_enough_history, -1));
  CHECK(silent(PhaseState::known, 1));  // no statistics
  CHECK(silent(PhaseState::known, 2));  // not in this training
}

TEST_CASE("AI4DL's policies have no opinion about a resource that training did not measure") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  PolicyEnvironment around;
  around.phase_statistics = std::make_shared<std::vector<PhaseStatistics>>(
      std::vector<PhaseStatistics>{{500, none, 0, 100 * kMib, 10 * kMib},
                                   {500, 1, 0.25, none, 0}});
  PolicyRun run("ai4dl-phase", {}, around);
  feed_phase(run, PhaseState::known, 0);
  CHECK_FALSE(run.allocation().cpu.has_value());
  CHECK(run.allocation().cpu_sample_count == 0);
  CHECK(run.mib() == 120);
  feed_phase(run, PhaseState::known, 1);
  CHECK(run.cores() == 1.5);
  CHECK_FALSE(run.allocation().memory.has_value());
  CHECK(run.allocation().memory_sample_count == 0);
}

TEST_CASE("AI4DL's policies are refused without statistics") {
  const auto made = make_policy("ai4dl-phase-compat");
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().text ==
        "policy \"ai4dl-phase-compat\" needs phase statistics of training executions, "
        "which only cgphase replay makes");
}
