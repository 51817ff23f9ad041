#include "policy/baselines/theta_scan_policy.h"

#include <doctest/doctest.h>

#include "tests/policy/policy_run.h"

using namespace cgphase;

TEST_CASE("theta-scan has no opinion before its first window of 20 steps of 15 s") {
  PolicyRun run("theta-scan");
  run.feed(1, 100 * kMib, 300);  // the first step begins with the first sample
  CHECK_FALSE(run.allocation().cpu.has_value());
  run.feed(1, 100 * kMib);
  CHECK(run.cores() == doctest::Approx(1.1));
  CHECK(run.mib() == doctest::Approx(110));
}

TEST_CASE("theta-scan uses the 95 % quantile of the step maxima until there are two windows") {
  PolicyRun run("theta-scan");
  // A step ends with the sample 15 s after its start. All steps are 1, except two of 3.
  run.feed(1, 100 * kMib, 60);
  run.feed(3, 300 * kMib, 20);
  run.feed(1, 100 * kMib, 221);
  CHECK(run.cores() == doctest::Approx(3.3));  // the 19th of 20 is the lower of the two
}

TEST_CASE("theta-scan predicts the maximum of the coming window") {
  // Steps of one second and windows of 10. A spike of 3 cores every 8 seconds, else 0.5. Each
  // window contains a spike, even if the last seconds do not.
  PolicyRun run("theta-scan:step=1,window=10,past=80,margin=1");
  for (int i = 0; i < 81; ++i) run.feed(i % 8 == 0 ? 3 : 0.5, 100 * kMib);
  CHECK(run.cores() == doctest::Approx(3).epsilon(0.1));
  CHECK(run.mib() == doctest::Approx(100));
}

TEST_CASE("theta-scan decides once per window") {
  PolicyRun run("theta-scan:step=1,window=10,past=80,margin=1");
  run.feed(1, 100 * kMib, 41);
  run.feed(2, 200 * kMib, 9);
  CHECK(run.cores() == doctest::Approx(1));
  run.feed(2, 200 * kMib, 1);
  CHECK(run.cores() > 1.5);
}

TEST_CASE("theta-scan's forecast is at most five times the last window") {
  PolicyRun run("theta-scan:step=1,window=10,past=40,margin=1");
  run.feed(4, 4000 * kMib, 31);
  run.feed(0.01, 1 * kMib, 10);
  CHECK(run.cores() <= 0.05 + 1e-9);
}

TEST_CASE("if samples are rarer than steps, each sample is a step") {
  PolicyRun run("theta-scan");
  run.feed(1, 100 * kMib, 20, 60);
  CHECK_FALSE(run.allocation().cpu.has_value());
  run.feed(1, 100 * kMib, 1, 60);
  CHECK(run.cores() == doctest::Approx(1.1));
}

TEST_CASE("a gap clears theta-scan's past and keeps its recommendation") {
  PolicyRun run("theta-scan:step=1,window=10,past=80,margin=1");
  run.feed(1, 100 * kMib, 11);
  run.feed(2, 200 * kMib, 1, 0);
  run.feed(2, 200 * kMib, 9);
  CHECK(run.cores() == doctest::Approx(1));
  run.feed(2, 200 * kMib, 1);
  CHECK(run.cores() == doctest::Approx(2));
}
