#include "policy/baselines/oracle_policy.h"

#include <doctest/doctest.h>

#include "tests/policy/policy_run.h"

using namespace cgphase;

namespace {

// Demand of 1, 3, 2, 1, 1 cores, and as many GiB, at seconds 1 to 5.
PolicyEnvironment five_seconds(double window_seconds) {
  FutureDemand future;
  for (const double cores : {1, 3, 2, 1, 1}) {
    future.seconds.push_back(static_cast<double>(future.seconds.size() + 1));
    future.cpu_cores.push_back(cores);
    future.memory_bytes.push_back(cores * static_cast<double>(kGiB));
  }
  PolicyEnvironment around;
  around.window_seconds = window_seconds;
  around.future = std::make_shared<FutureDemand>(future);
  return around;
}

std::vector<double> recommendations(std::string_view spec, double window_seconds) {
  PolicyRun run(spec, {}, five_seconds(window_seconds));
  std::vector<double> cores;
  for (const double now : {1, 3, 2, 1, 1}) {
    run.feed(now, now * static_cast<double>(kGiB));
    CHECK(run.mib() == doctest::Approx(run.cores() * 1024));
    cores.push_back(run.cores());
  }
  return cores;
}

}  // namespace

TEST_CASE("oracle-max recommends the maximum of the coming window, without the current sample") {
  // Coming within 2 s: {3,2} {2,1} {1,1} {1}, then nothing: the last sample.
  CHECK(recommendations("oracle-max", 2) == std::vector<double>{3, 2, 1, 1, 1});
}

TEST_CASE("oracle-2sd recommends mean and two deviations of the coming window") {
  // {3,2}: 2.5 + 2 x 0.5; {2,1}: 1.5 + 2 x 0.5; {1,1}; {1}; nothing: the last sample.
  const auto cores = recommendations("oracle-2sd", 2);
  CHECK(cores[0] == doctest::Approx(3.5));
  CHECK(cores[1] == doctest::Approx(2.5));
  CHECK(cores[2] == doctest::Approx(1));
  CHECK(cores[4] == doctest::Approx(1));
}

TEST_CASE("an oracle's deviations are a parameter") {
  CHECK(recommendations("oracle-2sd:deviations=0", 2)[0] == doctest::Approx(2.5));
}

TEST_CASE("a coming window without a sample uses the next sample") {
  CHECK(recommendations("oracle-max", 0.5) == std::vector<double>{3, 2, 1, 1, 1});
}

TEST_CASE("an oracle keeps the nearest sample even if the window has more than a past window may") {
  constexpr int kSamples = static_cast<int>(WindowStatistic::kMostSamples) + 1;
  FutureDemand future;
  for (int i = 0; i < kSamples; ++i) {
    future.seconds.push_back(1 + i / 100.0);
    future.cpu_cores.push_back(i == 0 ? 3 : 1);
    future.memory_bytes.push_back(i == 0 ? 3e9 : 1e9);
  }
  PolicyEnvironment around;
  around.window_seconds = 600;
  around.future = std::make_shared<FutureDemand>(future);
  PolicyRun largest("oracle-max", {}, around);
  largest.feed(1, 1e9, 1, 0.5);
  CHECK(largest.cores() == 3);
  CHECK(largest.mib() * kMib == doctest::Approx(3e9));
  CHECK(largest.allocation().cpu_sample_count == kSamples);
  PolicyRun mean("oracle-2sd:deviations=0", {}, around);
  mean.feed(1, 1e9, 1, 0.5);
  CHECK(mean.cores() == doctest::Approx(1 + 2.0 / kSamples).epsilon(1e-7));
}

TEST_CASE("a sample that was not measured is not a demand of zero") {
  FutureDemand future{{1, 2, 3, 4}, {2.0, std::nullopt, 4.0, std::nullopt},
                      {std::nullopt, std::nullopt, 3e9, std::nullopt}};
  PolicyEnvironment around;
  around.window_seconds = 3;
  around.future = std::make_shared<FutureDemand>(future);
  PolicyRun mean("oracle-2sd:deviations=0", {}, around);
  mean.feed(2, 3e9);
  CHECK(mean.cores() == 4);  // of the 4 alone
  CHECK(mean.mib() * kMib == doctest::Approx(3e9));
  around.window_seconds = 1;  // nothing in the window: the next measured sample
  PolicyRun next("oracle-2sd", {}, around);
  next.feed(2, 1e9);
  CHECK(next.cores() == 4);
  next.feed(3, 1e9, 3);  // nothing follows: the last sample
  CHECK(next.cores() == 3);
}

TEST_CASE("an oracle without a future is refused") {
  for (const auto name : {"oracle-max", "oracle-2sd"}) {
    const auto made = make_policy(name);
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().kind == ErrorKind::invalid);
  }
  CHECK(make_policy("oracle-max").error().text ==
        "policy \"oracle-max\" must know the future, which only cgphase replay does");
}

TEST_CASE("a future out of order is refused") {
  PolicyEnvironment around;
  around.future = std::make_shared<FutureDemand>(FutureDemand{{2, 1}, {1, 1}, {1, 1}});
  CHECK_FALSE(make_policy("oracle-max", {}, around).has_value());
  around.future = std::make_shared<FutureDemand>(FutureDemand{{1, 2}, {1}, {1, 1}});
  CHECK_FALSE(make_policy("oracle-max", {}, around).has_value());
}
