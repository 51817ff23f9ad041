#include "policy/phase/learned_usage.h"

#include <doctest/doctest.h>

using namespace cgphase;

namespace {

constexpr UsageShapes kShapes{{0.01, 100}, {1e7, 400}};

LearnedUsage usage_of(double cores, double bytes) {
  LearnedUsage usage("vpa", kShapes);
  usage.cpu_cores.add(cores, 2, 0);
  usage.memory_bytes.add(bytes, 3, 0);
  usage.runs = 1;
  return usage;
}

}  // namespace

TEST_CASE("learned usage with another half-life keeps its weights") {
  const UsageShapes other{{0.01, 7}, {1e7, 28}};
  const auto usage = with_shapes(usage_of(1, 1e8), "vpa", other);
  REQUIRE(usage.has_value());
  CHECK(usage->cpu_cores.total_weight() == 2);
  CHECK(usage->cpu_cores.shape() == other.cpu);
  CHECK(usage->memory_bytes.shape() == other.memory);
}

TEST_CASE("usage that another policy learned, or with other buckets, is not used") {
  CHECK(with_shapes(usage_of(1, 1e8), "vpa", kShapes).has_value());
  CHECK_FALSE(with_shapes(usage_of(1, 1e8), "autopilot", kShapes).has_value());
  CHECK_FALSE(with_shapes(usage_of(1, 1e8), "vpa", {{0.02, 100}, {1e7, 400}}).has_value());
  CHECK_FALSE(with_shapes(usage_of(1, 1e8), "vpa", {{0.01, 100}, {2e7, 400}}).has_value());
}

TEST_CASE("learned usage is checked at its bounds and one past them") {
  LearnedUsage usage = usage_of(1, 1e8);
  usage.runs = 1'000'000;
  CHECK(check(usage).has_value());
  usage.runs = 1'000'001;
  CHECK_FALSE(check(usage).has_value());
  usage.runs = -1;
  CHECK_FALSE(check(usage).has_value());
  CHECK(check(LearnedUsage("vpa", {{0.01, 1e9}, {1e7, 1e9}})).has_value());
  CHECK_FALSE(check(LearnedUsage("vpa", {{0.01, 1.1e9}, {1e7, 1e9}})).has_value());
  CHECK(check(LearnedUsage(std::string(64, 'a'), kShapes)).has_value());
  CHECK_FALSE(check(LearnedUsage(std::string(65, 'a'), kShapes)).has_value());
  CHECK_FALSE(check(LearnedUsage("", kShapes)).has_value());
}

TEST_CASE("merged usage is four fifths of the earlier and all of the new one") {
  const LearnedUsage usage = merge(usage_of(1, 1e8), usage_of(2, 2e8));
  CHECK(usage.policy == "vpa");
  CHECK(usage.runs == 2);
  CHECK(usage.cpu_cores.total_weight() == doctest::Approx(0.8 * 2 + 2));
  CHECK(usage.memory_bytes.total_weight() == doctest::Approx(0.8 * 3 + 3));
}

TEST_CASE("earlier usage that cannot be used is dropped when a run is merged") {
  LearnedUsage bad = usage_of(1, 1e8);
  bad.runs = -1;
  CHECK(merge(bad, usage_of(2, 2e8)).runs == 1);
  LearnedUsage foreign = usage_of(1, 1e8);
  foreign.policy = "autopilot";
  CHECK(merge(foreign, usage_of(2, 2e8)).runs == 1);
}

TEST_CASE("the half-life of a job has bounds") {
  CHECK(bounded_half_life(0.5) == 1);
  CHECK(bounded_half_life(600) == 600);
  CHECK(bounded_half_life(1e12) == 1e8);
}
