#include "policy/policy.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <vector>

using namespace cgphase;

namespace {

constexpr HostCapacity kHost{16, Bytes{64 * kGiB}};

Limits four_cores_eight_gib() {
  Limits limits;
  limits.cpu_max = CpuMax{Microseconds{400'000}, Microseconds{100'000}};
  limits.memory_max = MemoryLimit{Bytes{8 * kGiB}};
  return limits;
}

struct Run {
  explicit Run(std::string_view name) : policy(make_policy(name, nullptr).value()) {}
  void feed(double cores, int count = 1) {
    for (int i = 0; i < count; ++i) {
      seconds += 1;
      Observation observation;
      observation.time = MonotonicTime(std::chrono::seconds(seconds));
      observation.interval_seconds = 1;
      observation.cpu_cores = cores;
      observation.memory_need_bytes = cores * static_cast<double>(kGiB);
      policy->observe(observation);
    }
  }
  Allocation allocation() const { return policy->allocate(four_cores_eight_gib(), kHost); }
  double cores() const { return allocation().cpu.value().value; }
  std::unique_ptr<Policy> policy;
  int seconds = 0;
};

}  // namespace

TEST_CASE("the four policies are made by name") {
  CHECK(policy_names() == std::vector<std::string_view>{"static", "sliding", "hold", "phase"});
  for (const auto name : policy_names()) CHECK(make_policy(name, nullptr).has_value());
}

TEST_CASE("an unknown policy is refused and the nearest named") {
  const auto made = make_policy("slidng", nullptr);
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().kind == ErrorKind::invalid);
  CHECK(made.error().text.find("\"sliding\"") != std::string::npos);
}

TEST_CASE("an unknown policy far from all gets the list") {
  const auto made = make_policy("quarterly-budget", nullptr);
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().text.find("static, sliding, hold, phase") != std::string::npos);
}

TEST_CASE("static gives the original limit") {
  Run run("static");
  CHECK(run.cores() == 4);
  CHECK(run.allocation().memory == Bytes{8 * kGiB});
}

TEST_CASE("static gives the host where there is no limit") {
  const auto allocation = Run("static").policy->allocate(Limits{}, kHost);
  CHECK(allocation.cpu == Cores{16});
  CHECK(allocation.memory == Bytes{64 * kGiB});
}

TEST_CASE("window policies have no opinion before ten samples") {
  for (const auto name : {"sliding", "hold"}) {
    CAPTURE(name);
    Run run(name);
    run.feed(1, 9);
    CHECK_FALSE(run.allocation().cpu.has_value());
    run.feed(1);
    CHECK(run.allocation().cpu.has_value());
  }
}

TEST_CASE("sliding is mean plus two standard deviations") {
  Run run("sliding");
  for (int i = 0; i < 5; ++i) {  // mean 1.5, sd 0.5, ends with 1
    run.feed(2);
    run.feed(1);
  }
  CHECK(run.cores() == doctest::Approx(2.5));
}

TEST_CASE("sliding is never below 1.05 x the last sample") {
  Run run("sliding");
  run.feed(1, 59);
  run.feed(3);
  // mean 1.0333, sd 0.2560: the last sample decides
  CHECK(run.cores() == doctest::Approx(3.15));
}

TEST_CASE("sliding forgets what left its window of 60") {
  Run run("sliding");
  run.feed(3, 10);
  run.feed(1, 59);
  CHECK(run.cores() > 1.2);
  run.feed(1);
  CHECK(run.cores() == doctest::Approx(1.05));
}

TEST_CASE("hold is 1.1 x the 95 % quantile") {
  Run run("hold");
  run.feed(1, 18);
  run.feed(2);
  run.feed(1);
  CHECK(run.cores() == doctest::Approx(2.2));
}

TEST_CASE("hold goes up at once to 1.1 x the last sample") {
  Run run("hold");
  run.feed(1, 60);
  CHECK(run.cores() == doctest::Approx(1.1));
  run.feed(2);
  CHECK(run.cores() == doctest::Approx(2.2));
}

TEST_CASE("hold goes down only ten samples after the last change") {
  Run run("hold");
  run.feed(1, 60);
  run.feed(2);       // up, one sample of sixty: the quantile stays 1
  run.feed(1, 9);
  CHECK(run.cores() == doctest::Approx(2.2));
  run.feed(1);
  CHECK(run.cores() == doctest::Approx(1.1));
}

TEST_CASE("hold does not go down by less than ten per cent") {
  Run run("hold");
  run.feed(1.0, 60);
  run.feed(0.92, 60);
  CHECK(run.cores() == doctest::Approx(1.1));
  run.feed(0.89, 60);
  CHECK(run.cores() == doctest::Approx(0.979));
}

TEST_CASE("no policy asks for more than the original limit") {
  for (const auto name : policy_names()) {
    CAPTURE(name);
    Run run(name);
    run.feed(100, 60);
    const auto allocation = run.allocation();
    if (allocation.cpu) CHECK(*allocation.cpu == Cores{4});
    if (allocation.memory) CHECK(*allocation.memory == Bytes{8 * kGiB});
  }
}

TEST_CASE("phase-free policies learn nothing") {
  for (const auto name : {"static", "sliding", "hold"})
    CHECK(make_policy(name, nullptr).value()->learned().is_null());
}
