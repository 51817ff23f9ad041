#include <doctest/doctest.h>

#include "tests/policy/policy_run.h"

using namespace cgphase;

namespace {

PolicyEnvironment window_of(double seconds) {
  PolicyEnvironment around;
  around.window_seconds = seconds;
  return around;
}

}  // namespace

TEST_CASE("adaptive-max recommends the maximum of the last window") {
  PolicyRun run("adaptive-max", {}, window_of(20));
  run.feed(3, 300 * kMib);
  run.feed(1, 100 * kMib, 19);  // 20 samples: second 1 to 20
  CHECK(run.cores() == 3);
  CHECK(run.mib() == 300);
  run.feed(1, 100 * kMib);  // at 21 the window is (1, 21]
  CHECK(run.cores() == 1);
  CHECK(run.mib() == 100);
}

TEST_CASE("adaptive-2sd recommends mean and two deviations of the last window") {
  PolicyRun run("adaptive-2sd", {}, window_of(20));
  for (int i = 0; i < 10; ++i) {  // mean 1.5, deviation 0.5
    run.feed(2, 200 * kMib);
    run.feed(1, 100 * kMib);
  }
  CHECK(run.cores() == doctest::Approx(2.5));
  CHECK(run.mib() == doctest::Approx(250));
}

TEST_CASE("a window shorter than the sampling interval contains the last sample") {
  PolicyRun run("adaptive-max", {}, window_of(20));
  run.feed(1, 100 * kMib, 9, 300);
  CHECK_FALSE(run.allocation().cpu.has_value());
  run.feed(2, 200 * kMib, 1, 300);
  CHECK(run.cores() == 2);
}
