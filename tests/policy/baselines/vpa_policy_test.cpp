#include "policy/baselines/vpa_policy.h"

#include <doctest/doctest.h>

#include "tests/policy/policy_run.h"

using namespace cgphase;

namespace {

// VPA's buckets begin at first * (1.05^i - 1) / 0.05. A quantile is the end of its bucket.
//   CPU:    0.01, 0.0205, ...; 1.05^36 = 5.7918: 0.9584 cores, 1.05^37 = 6.0814: 1.0163,
//           1.05^49 = 10.9213: 1.9843, 1.05^50 = 11.4674: 2.0935
//   memory: 1e7 bytes, 2.05e7, ...; 1.05^8 = 1.47746: 95.491e6, 1.05^9 = 1.55133: 110.266e6
constexpr double kEndOfOneCore = 1.016281;   // contains 1
constexpr double kEndOfTwoCores = 2.093480;  // contains 2
constexpr double kEndOf100Mb = 110.265643e6;

double asked(const PolicyRun& run) { return run.mib() * kMib; }

}  // namespace

TEST_CASE("VPA's buckets widen by five percent") {
  VpaHistogram histogram(DecayingHistogram(VpaHistogram::shape(0.01, 86400)));
  const auto end_of = [&](double value) {
    VpaHistogram one = histogram;
    one.add(value, 1, 0);
    return *one.quantile(1);
  };
  CHECK(end_of(0) == doctest::Approx(0.01));
  CHECK(end_of(0.0099) == doctest::Approx(0.01));
  CHECK(end_of(0.0101) == doctest::Approx(0.0205));    // 0.01 x 2.05
  CHECK(end_of(0.0206) == doctest::Approx(0.031525));  // 0.01 x 3.1525
  CHECK(end_of(1) == doctest::Approx(kEndOfOneCore));
}

TEST_CASE("vpa recommends 1.15 x the 90th percentile of CPU") {
  PolicyRun run("vpa");
  run.feed(1, 1e8, 9);
  CHECK_FALSE(run.allocation().cpu.has_value());
  run.feed(1, 1e8);
  run.feed(2, 1e8);  // ten of eleven are 1
  CHECK(run.cores() == doctest::Approx(1.15 * kEndOfOneCore));
  run.feed(2, 1e8);  // ten of twelve
  CHECK(run.cores() == doctest::Approx(1.15 * kEndOfTwoCores));
}

TEST_CASE("vpa weighs a CPU sample by the limit in force, at least 0.1 core") {
  PolicyRun run("vpa");
  run.feed_cpu(1, 0.05, 89);  // weighs 0.1 each, 8.9 together
  run.feed_cpu(2, 1, 1);      // 1: more than a tenth of 9.9
  CHECK(run.cores() == doctest::Approx(1.15 * kEndOfTwoCores));
  run.feed_cpu(1, 0.05, 2);   // 9.1 of 10.1
  CHECK(run.cores() == doctest::Approx(1.15 * kEndOfOneCore));
}

TEST_CASE("in vpa the weight of a sample halves in a day") {
  PolicyRun run("vpa");
  run.feed(2, 1e8, 20);
  run.feed(1, 1e8, 1, 86400);
  run.feed(1, 1e8, 83);  // 20 weigh 10 by now; an interval of a day would weigh more
  CHECK(run.cores() == doctest::Approx(1.15 * kEndOfOneCore));
}

TEST_CASE("vpa has one peak of memory per day") {
  PolicyRun run("vpa");
  run.feed(1, 5e7);
  run.feed(1, 1e8);       // the peak of the day counts at once
  run.feed(1, 5e7, 200);
  CHECK(asked(run) == doctest::Approx(1.15 * kEndOf100Mb));
  // Ten days at 5e7 (bucket from 43.101e6 to 55.256e6). The old peak weighs 2^-10 of the newest.
  run.feed(1, 5e7, 10, 86400);
  CHECK(asked(run) == doctest::Approx(1.15 * 55.256313e6));
}

TEST_CASE("the current peak of an interval replaces lower ones") {
  VpaMemoryPeaks peaks(100);
  CHECK_FALSE(peaks.add(5, 10).has_value());
  CHECK_FALSE(peaks.add(9, 50).has_value());
  CHECK_FALSE(peaks.add(7, 109.9).has_value());
  CHECK(peaks.running()->bytes == 9);
  const auto ended = peaks.add(3, 110);
  REQUIRE(ended.has_value());
  CHECK(ended->bytes == 9);
  CHECK(ended->time_seconds == 110);
  CHECK(peaks.running()->bytes == 3);
  CHECK(peaks.add(4, 450)->time_seconds == 210);  // no sample meanwhile
  CHECK(peaks.running()->time_seconds == 510);    // the intervals stay on their grid
}

TEST_CASE("a lack of memory bumps by a factor of 1.2, and by at least 100 MiB") {
  VpaMemoryPeaks peaks(100);
  peaks.add(1000 * kMib, 0);
  peaks.bump(500 * kMib, 1.2, 100 * kMib);  // use is above the limit in force
  CHECK(peaks.running()->bytes == doctest::Approx(1200 * kMib));
  peaks.bump(500 * kMib, 1.2, 100 * kMib);  // not on top of the bump
  CHECK(peaks.running()->bytes == doctest::Approx(1200 * kMib));
  VpaMemoryPeaks small(100);
  small.add(50 * kMib, 0);
  small.bump(60 * kMib, 1.2, 100 * kMib);
  CHECK(small.running()->bytes == doctest::Approx(160 * kMib));
}

TEST_CASE("vpa bumps when need exceeds its recommendation") {
  PolicyRun run("vpa");
  run.feed(1, 1e8, 10);  // the recommendation is 1.15 x 110.27e6 = 126.81e6
  run.feed(1, 1.2e8);    // below it: the bucket of 120e6 ends at 125.779e6
  CHECK(asked(run) == doctest::Approx(1.15 * 125.778925e6));
  run.feed(1, 1.5e8);
  // Above 144.65e6: 1.5e8 + 100 MiB = 254.858e6, more than 1.2 x; in the bucket from 1.05^16 =
  // 2.182875, 236.575e6, to 1.05^17 = 2.292018, 258.404e6.
  CHECK(asked(run) == doctest::Approx(1.15 * 258.403664e6));
}

TEST_CASE("the warm-up of vpa is not a lack of memory") {
  PolicyRun run("vpa");
  run.feed(1, 1e7);
  run.feed(1, 1e8, 9);  // exceeds 1.15 x 2.05e7, which was never recommended
  CHECK(asked(run) == doctest::Approx(1.15 * kEndOf100Mb));
}

TEST_CASE("vpa-tuned has a half-life of an eighth of the job") {
  PolicyEnvironment around;
  around.job_seconds = 800;
  PolicyRun tuned("vpa-tuned", {}, around), plain("vpa", {}, around);
  for (PolicyRun* run : {&tuned, &plain}) {
    run->feed(2, 1e8, 100);
    run->feed(1, 1e8, 400);  // after four half-lives a sixteenth of the old weight is left
  }
  CHECK(tuned.cores() == doctest::Approx(1.15 * kEndOfOneCore));
  CHECK(plain.cores() == doctest::Approx(1.15 * kEndOfTwoCores));
}

TEST_CASE("vpa-tuned uses the window if the length of the job is unknown") {
  PolicyEnvironment around;
  around.window_seconds = 100;
  PolicyRun run("vpa-tuned", {}, around);
  run.feed(2, 1e8, 100);
  run.feed(1, 1e8, 400);
  CHECK(run.cores() == doctest::Approx(1.15 * kEndOfOneCore));
}

TEST_CASE("a later run starts with what vpa learned") {
  PolicyRun run("vpa");
  run.feed(1, 1e8, 20);
  const LearnedState prior = merge_learned({}, run.policy->learned());
  PolicyRun next("vpa", prior);
  CHECK(next.cores() == doctest::Approx(1.15 * kEndOfOneCore));
  CHECK(asked(next) == doctest::Approx(1.15 * kEndOf100Mb));
  CHECK(next.allocation().earlier_runs == 1);
}

TEST_CASE("vpa-tuned accepts what runs of another length learned") {
  PolicyEnvironment brief, longer;
  brief.job_seconds = 80;
  longer.job_seconds = 8000;
  PolicyRun run("vpa-tuned", {}, brief);
  run.feed(1, 1e8, 20);
  PolicyRun other("vpa-tuned", {}, longer);
  other.feed(1, 1e8, 20);
  const LearnedState first = merge_learned({}, run.policy->learned());
  const LearnedState both = merge_learned(first, other.policy->learned());
  CHECK(std::get<LearnedUsage>(both).runs == 2);
  CHECK(PolicyRun("vpa-tuned", both, brief).cores() == doctest::Approx(1.15 * kEndOfOneCore));
  CHECK_FALSE(PolicyRun("vpa", both).allocation().cpu.has_value());  // learned by another policy
}
