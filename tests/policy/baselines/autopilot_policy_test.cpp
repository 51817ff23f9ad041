#include "policy/baselines/autopilot_policy.h"

#include <doctest/doctest.h>

#include "tests/policy/policy_run.h"

using namespace cgphase;

namespace {

// The bucket edges are 0.01 x 1.05^i cores and 1e7 x 1.05^i bytes. A quantile is the upper edge:
// 0.01 x 1.05^95 above 1 core, x 1.05^109 above 2; 1e7 x 1.05^48 above 1e8 bytes, x 1.05^62 above
// 2e8.
constexpr double kEdgeOverOneCore = 1.0303468;
constexpr double kEdgeOverTwoCores = 2.0400161;
constexpr double kEdgeOver100Mb = 104.012696e6;
constexpr double kEdgeOver200Mb = 205.938024e6;

double bytes(const PolicyRun& run) { return run.mib() * kMib; }

}  // namespace

TEST_CASE("autopilot recommends 1.15 x the load-adjusted 95th percentile of CPU") {
  PolicyRun run("autopilot");
  run.feed(1, 1e8, 77);
  run.feed(2, 1e8, 2);  // 77 of 77 + 2 x 2 is more than 95 %
  CHECK(run.cores() == doctest::Approx(1.15 * kEdgeOverOneCore));
  run.feed(2, 1e8, 1);  // 77 of 83 is less, though 77 of 80 samples were 1
  CHECK(run.cores() == doctest::Approx(1.15 * kEdgeOverTwoCores));
}

TEST_CASE("autopilot keeps the highest recommendation of the last hour") {
  PolicyRun run("autopilot");
  run.feed(1, 1e8, 77);
  run.feed(2, 1e8, 3);
  // 77 + n of 83 + n is 95 % from n = 37 on. Until n = 36 two cores were recommended.
  run.feed(1, 1e8, 3600);
  CHECK(run.cores() == doctest::Approx(1.15 * kEdgeOverTwoCores));
  run.feed(1, 1e8, 100);
  CHECK(run.cores() == doctest::Approx(1.15 * kEdgeOverOneCore));
}

TEST_CASE("autopilot recommends 1.15 x the 98th percentile of the five-minute peaks of memory") {
  PolicyRun run("autopilot");
  run.feed(1, 2e8);
  run.feed(1, 1e8, 50, 300);  // 50 peaks of 1e8 against one of 2e8, which weighs nearly twice that
  CHECK(bytes(run) == doctest::Approx(1.15 * kEdgeOver200Mb));
  run.feed(1, 1e8, 550, 300);  // 600 against one that lost half its weight
  CHECK(bytes(run) == doctest::Approx(1.15 * kEdgeOver100Mb));
}

TEST_CASE("the peak of the current five minutes counts at once") {
  PolicyRun run("autopilot");
  run.feed(1, 1e8, 10);
  CHECK(bytes(run) == doctest::Approx(1.15 * kEdgeOver100Mb));
  run.feed(1, 2e8);
  CHECK(bytes(run) == doctest::Approx(1.15 * kEdgeOver200Mb));
}

TEST_CASE("a memory quantile of 1 is the maximum") {
  PolicyRun run("autopilot:memory-quantile=1,margin=1.1");
  run.feed(1, 2e8);
  run.feed(1, 1e8, 600, 300);
  CHECK(bytes(run) == doctest::Approx(1.1 * kEdgeOver200Mb));
}

TEST_CASE("autopilot-tuned has a half-life of an eighth of the job and other times in proportion") {
  PolicyEnvironment around;
  around.job_seconds = 9600;
  PolicyRun tuned("autopilot-tuned", {}, around), plain("autopilot", {}, around);
  for (PolicyRun* run : {&tuned, &plain}) {
    run->feed(2, 1e8, 400);
    // After four half-lives, 2 x 400 weigh 50 of 1673. With 12 h they weigh a seventh.
    run->feed(1, 1e8, 4800);
  }
  CHECK(tuned.cores() == doctest::Approx(1.15 * kEdgeOverOneCore));
  CHECK(plain.cores() == doctest::Approx(1.15 * kEdgeOverTwoCores));
}

TEST_CASE("a later run starts with what autopilot learned") {
  PolicyRun run("autopilot");
  run.feed(1, 1e8, 20);
  PolicyRun next("autopilot", merge_learned({}, run.policy->learned()));
  CHECK_FALSE(next.allocation().cpu.has_value());  // nothing was recommended in this hour yet
  next.feed(0.5, 5e7);
  CHECK(next.cores() == doctest::Approx(1.15 * kEdgeOverOneCore));
  CHECK(bytes(next) == doctest::Approx(1.15 * kEdgeOver100Mb));
  CHECK(next.allocation().earlier_runs == 1);
}

TEST_CASE("autopilot recommends the lowest bucket for an idle container") {
  PolicyRun run("autopilot");
  run.feed(0, 0, 10);
  CHECK(run.cores() == doctest::Approx(1.15 * 0.01));
  CHECK(bytes(run) == doctest::Approx(1.15 * 1e7));
}
