// The laws for the real agent on the simulated kernel, under random events.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <string>

#include "base/parse.h"
#include "tests/simulator/world.h"

using namespace cgphase;
using namespace cgphase::simulator;

namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = ::getenv(name);
  return text == nullptr ? otherwise : parse_u64(text).value_or(otherwise);
}

struct Sum {
  std::uint64_t runs = 0, steps = 0, crashes = 0, faults = 0, lowered = 0, raised = 0,
                restored = 0, races = 0, parked = 0, hangs = 0, nested = 0, kills = 0,
                disk_failures = 0, slow_ticks = 0, weighed = 0, granted = 0, kept = 0,
                frozen = 0;
  void add(const RunReport& one) {
    runs += 1;
    steps += one.steps;
    crashes += one.crashes;
    faults += one.faults;
    lowered += one.tally.lowered;
    raised += one.tally.raised;
    restored += one.tally.restored;
    races += one.tally.lost_races;
    parked += one.parked;
    hangs += one.hangs;
    nested += one.nested;
    kills += one.kills;
    disk_failures += one.disk_failures;
    slow_ticks += one.slow_ticks;
    weighed += one.tally.weighed;
    granted += one.tally.granted;
    kept += one.tally.kept;
    frozen += one.tally.frozen;
  }
};

// Runs the scenario with many seeds, or only with CGPHASE_SEED.
Sum run_seeds(const std::string& name, Scenario scenario, std::uint64_t seeds) {
  Sum sum;
  const std::uint64_t only = from_environment("CGPHASE_SEED", 0);
  seeds *= from_environment("CGPHASE_SEEDS_TIMES", 1);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    if (only != 0 && seed != only) continue;
    scenario.seed = seed;
    scenario.trace = from_environment("CGPHASE_TRACE", 0) != 0;
    const RunReport report = World(scenario).run();
    sum.add(report);
    REQUIRE_MESSAGE(report.violation.empty(), report.violation << "\n  replay: CGPHASE_SEED="
                                                 << seed << " test_simulator -tc='" << name
                                                 << "'");
  }
  MESSAGE(sum.runs << " seeds, " << sum.steps << " steps, " << sum.lowered << " lowered, "
                   << sum.raised << " raised, " << sum.restored << " restored, " << sum.crashes
                   << " deaths tried, " << sum.faults << " faults, " << sum.parked << " parked, "
                   << sum.hangs << " hangs, " << sum.nested << " in the middle, " << sum.races
                   << " races, " << sum.kills << " kills, " << sum.disk_failures
                   << " of the disk");
  return sum;
}

}  // namespace

// rule: S-03, MEM-09, MEM-10, CPU-03, REST-01
TEST_CASE("laws: containers that only grow and shrink") {
  Scenario scenario;
  scenario.events_one_in = 0;
  scenario.nested_one_in = 0;
  const Sum sum = run_seeds("laws: containers that only grow and shrink", scenario, 24);
  CHECK((sum.runs < 2 || sum.lowered > 100));
}

// rule: REST-01
TEST_CASE("laws: others write, remove, freeze, reload and switch modes") {
  Scenario scenario;
  scenario.nested_one_in = 0;
  const Sum sum =
      run_seeds("laws: others write, remove, freeze, reload and switch modes", scenario, 40);
  CHECK((sum.runs < 2 || sum.lowered > 100));
}

// rule: CPU-03
TEST_CASE("laws: weights of classes beside others who write, reload and switch modes") {
  for (const std::uint64_t nested_one_in : {0, 1000}) {
    Scenario scenario;
    scenario.classes = true;
    scenario.nested_one_in = nested_one_in;
    scenario.late_results_one_in = 10;
    const Sum sum = run_seeds(
        "laws: weights of classes beside others who write, reload and switch modes", scenario, 30);
    CHECK((sum.runs < 2 || sum.weighed > 100));
    CHECK((sum.runs < 2 || sum.lowered > 100));
  }
}

// rule: BUDGET-03
// rule: BUDGET-04
TEST_CASE("laws: limits above the original by consent, beside others") {
  for (const std::uint64_t nested_one_in : {0, 1000}) {
    Scenario scenario;
    scenario.consents = true;
    scenario.nested_one_in = nested_one_in;
    scenario.late_results_one_in = 10;
    const Sum sum =
        run_seeds("laws: limits above the original by consent, beside others", scenario, 30);
    MESSAGE(sum.granted << " granted, " << sum.kept << " kept because in use");
    CHECK((sum.runs < 2 || (sum.granted > 100 && sum.kept > 0)));
  }
}

// rule: BUDGET-07
// rule: BUDGET-08
TEST_CASE("laws: class batch is frozen while memory is short, beside others and hangs") {
  for (const std::uint64_t nested_one_in : {0, 1000}) {
    Scenario scenario;
    scenario.freezes = true;
    scenario.hangs = true;
    scenario.nested_one_in = nested_one_in;
    scenario.late_results_one_in = 10;
    const Sum sum = run_seeds(
        "laws: class batch is frozen while memory is short, beside others and hangs", scenario, 30);
    MESSAGE(sum.frozen << " frozen");
    CHECK((sum.runs < 2 || sum.frozen > 20));
  }
}

// rule: BUDGET-08
TEST_CASE("laws: class batch is frozen while system calls fail") {
  Scenario scenario;
  scenario.freezes = true;
  scenario.events_one_in = 40;
  scenario.nested_one_in = 0;
  scenario.faults = {.one_in = 2000, .burst = 3};
  const Sum sum =
      run_seeds("laws: class batch is frozen while system calls fail", scenario, 20);
  CHECK((sum.runs < 2 || sum.frozen > 20));
}

TEST_CASE("laws: others act during every system call") {
  Scenario scenario;
  scenario.nested_one_in = 1000;
  scenario.late_results_one_in = 10;
  const Sum sum =
      run_seeds("laws: others act during every system call", scenario, 60);
  CHECK((sum.runs < 2 || sum.lowered > 100));
}

TEST_CASE("laws: others act while a lowering waits in the kernel") {
  Scenario scenario;
  scenario.nested_one_in = 0;
  scenario.slow_writes_one_in = 2;
  scenario.blocked_events_one_in = 8;
  const Sum sum =
      run_seeds("laws: others act while a lowering waits in the kernel", scenario, 36);
  CHECK((sum.runs < 2 || sum.lowered > 100));
  CHECK((sum.runs < 2 || sum.parked > 100));
}

TEST_CASE("laws: a child cgroup reaches a limit of its own") {
  Scenario scenario;
  scenario.events_one_in = 40;
  scenario.nested_one_in = 0;
  scenario.inner_limits = true;
  const Sum sum =
      run_seeds("laws: a child cgroup reaches a limit of its own", scenario, 16);
  CHECK((sum.runs < 2 || sum.lowered > 100));
  CHECK((sum.runs < 2 || sum.kills > 100));
}

TEST_CASE("laws: processes open a GPU, also while a lowering waits in the kernel") {
  Scenario scenario;
  scenario.events_one_in = 40;
  scenario.nested_one_in = 0;
  scenario.slow_writes_one_in = 2;
  scenario.gpus = true;
  const Sum sum = run_seeds(
      "laws: processes open a GPU, also while a lowering waits in the kernel", scenario,
      16);
  CHECK((sum.runs < 2 || sum.lowered > 50));
}

// The companion restores meanwhile, and the agent starts afresh.
TEST_CASE("laws: reading takes as long as the companion waits") {
  Scenario scenario;
  scenario.events_one_in = 40;
  scenario.nested_one_in = 0;
  scenario.growth_ratio = 0.025;
  scenario.slow_ticks_one_in = 30;
  const Sum sum = run_seeds("laws: reading takes as long as the companion waits", scenario, 16);
  CHECK((sum.runs < 2 || sum.lowered > 100));
  CHECK((sum.runs < 2 || sum.slow_ticks > 100));
  CHECK((sum.runs < 2 || sum.restored > 100));
}

TEST_CASE("laws: a restore by the companion is not a foreign change") {
  Scenario scenario;
  scenario.events_one_in = scenario.nested_one_in = 0;
  scenario.growth_ratio = 0.025;
  scenario.slow_ticks_one_in = 10;
  const Sum sum =
      run_seeds("laws: a restore by the companion is not a foreign change", scenario, 16);
  CHECK((sum.runs < 2 || sum.lowered > 100));
  CHECK((sum.runs < 2 || sum.slow_ticks > 300));
  CHECK((sum.runs < 2 || sum.restored > 100));
}

TEST_CASE("laws: the daemon hangs") {
  Scenario scenario;
  scenario.nested_one_in = 5000;
  scenario.growth_ratio = 0.025;
  scenario.hangs = true;
  const Sum sum = run_seeds("laws: the daemon hangs", scenario, 30);
  CHECK((sum.runs < 2 || sum.lowered > 100));
}

TEST_CASE("laws: system calls fail") {
  Scenario scenario;
  scenario.growth_ratio = 0.04;
  scenario.faults = {.one_in = 500, .burst = 3};
  const Sum sum = run_seeds("laws: system calls fail", scenario, 40);
  CHECK((sum.runs < 2 || sum.lowered > 100));
}

TEST_CASE("laws: memory runs out at any allocation") {
  Scenario scenario;
  scenario.seconds = 60;
  scenario.allocation_one_in = 23;
  const Sum sum = run_seeds("laws: memory runs out at any allocation", scenario, 20);
  CHECK((sum.runs < 2 || sum.crashes > 1000));
}

TEST_CASE("laws: the history's disk fails and works again") {
  Scenario scenario;
  scenario.nested_one_in = 0;
  scenario.disk_one_in = 20;
  const Sum sum = run_seeds("laws: the history's disk fails and works again", scenario, 16);
  CHECK((sum.runs < 2 || sum.lowered > 50));
  CHECK((sum.runs < 2 || sum.disk_failures > 1000));
}

// Without data from earlier runs the history does not influence decisions.
TEST_CASE("a failing disk changes no limit and no time of a change") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Scenario scenario;
    scenario.seed = seed;
    scenario.events_one_in = scenario.nested_one_in = 0;
    scenario.history = true;
    const RunReport works = World(scenario).run();
    scenario.disk_one_in = 5;
    const RunReport fails = World(scenario).run();
    CHECK(works.violation == "");
    CHECK(fails.violation == "");
    CHECK(works.tally.lowered > 0);
    CHECK(fails.disk_failures > 100);
    CHECK(works.hash == fails.hash);
  }
}

TEST_CASE("a seed repeats exactly") {
  Scenario scenario;
  scenario.seed = 7;
  scenario.seconds = 200;
  scenario.nested_one_in = 500;
  scenario.hangs = true;
  scenario.faults = {.one_in = 300, .burst = 2};
  scenario.disk_one_in = 10;
  const RunReport first = World(scenario).run(), second = World(scenario).run();
  CHECK(first.violation == "");
  CHECK(first.hash == second.hash);
  CHECK(first.steps == second.steps);
  scenario.seed = 8;
  CHECK(World(scenario).run().hash != first.hash);
}

// Every call of the first lowerings fails once, in each way.
TEST_CASE("laws: exactly the n-th system call fails, for every n") {
  Scenario scenario;
  scenario.seed = 5;
  scenario.seconds = 22;
  scenario.events_one_in = scenario.nested_one_in = 0;
  scenario.crash_one_in = 0;
  const std::uint64_t calls = World(scenario).run().calls;
  CHECK(calls > 1000);
  std::uint64_t runs = 0, lowered = 0, refused = 0;
  const std::uint64_t step = from_environment("CGPHASE_SEEDS_TIMES", 1) > 1 ? 1 : 8;
  // Only CGPHASE_CALL is traced.
  const std::uint64_t only = from_environment("CGPHASE_CALL", 0);
  for (std::uint64_t n = 1; n <= calls; n += step) {
    if (only != 0 && n != only) continue;
    scenario.trace = only != 0;
    scenario.faults = {.at_call = n, .calls = 1 + n / step % 4};
    const RunReport report = World(scenario).run();
    runs += 1;
    lowered += report.tally.lowered;
    refused += report.tally.refused;
    REQUIRE_MESSAGE(report.violation.empty(), report.violation << " (call " << n << ")");
    CHECK(report.faults > 0);
  }
  CHECK(lowered > runs);
  CHECK(refused > 0);
  MESSAGE(calls << " calls, " << runs << " runs, " << lowered << " lowered, " << refused
                << " refused");
}

// A lowering of the CPU is two writes. A completed first write is rolled back.
TEST_CASE("laws: exactly the n-th write fails, for every n") {
  Scenario scenario;
  scenario.seconds = 40;
  scenario.events_one_in = scenario.nested_one_in = 0;
  scenario.crash_one_in = 0;
  // Only CGPHASE_SEED is traced, and of it only CGPHASE_WRITE.
  const std::uint64_t seed = from_environment("CGPHASE_SEED", 0);
  const std::uint64_t write = from_environment("CGPHASE_WRITE", 0);
  std::uint64_t runs = 0, refused = 0;
  for (scenario.seed = 1; scenario.seed <= 6; ++scenario.seed) {
    if (seed != 0 && scenario.seed != seed) continue;
    scenario.trace = false;
    scenario.faults = {.only_writes = true};
    const std::uint64_t writes = World(scenario).run().calls;
    for (std::uint64_t n = 1; n <= writes; ++n) {
      if (write != 0 && n != write) continue;
      scenario.trace = write != 0;
      scenario.faults = {.at_call = n, .only_writes = true};
      const RunReport report = World(scenario).run();
      runs += 1;
      refused += report.tally.refused;
      REQUIRE_MESSAGE(report.violation.empty(),
                      report.violation << " (seed " << scenario.seed << ", write " << n << ")");
    }
  }
  CHECK((seed != 0 || refused > 50));
  MESSAGE(runs << " runs, " << refused << " refused");
}
