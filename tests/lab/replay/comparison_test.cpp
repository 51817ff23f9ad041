#include "lab/replay/comparison.h"

#include <doctest/doctest.h>

#include "tests/lab/replay/results.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

// Two executions with the same sums; the oracle allocates 2 of 10.
SweepPoint point(const char* name, double allocated, std::int64_t over) {
  return {name, {sums(allocated, over), sums(allocated, over)}, {}};
}

const Sweep kA{"a", {point("few", 6, 0), point("some", 5, 1), point("many", 4, 5)}, 1};
const Sweep kB{"b", {point("dear", 8, 1), point("cheap", 3, 6)}, {}};

const MatchedCosts& at(const Comparison& comparison, std::size_t level) {
  return comparison.resources.at(0).levels.at(level);
}

}  // namespace

TEST_CASE("each side has its cheapest setting at a level") {
  const Comparison comparison = compare(kA, kB, {});
  REQUIRE(comparison.resources.size() == 1);
  REQUIRE(comparison.resources[0].levels.size() == 4);
  const MatchedCosts& one = at(comparison, 1), &five = at(comparison, 2);
  CHECK(one.violation == 0.01);
  CHECK(one.a->point == "some");
  CHECK(one.a->above_oracle == doctest::Approx(0.3));
  CHECK(one.a->writes == 6);
  CHECK(one.b->point == "dear");
  CHECK(one.ratio == doctest::Approx(0.5));
  CHECK(five.a->point == "many");
  CHECK(five.b->point == "dear");
}

TEST_CASE("a side without a point at the level is absent, and so are ratio and difference") {
  const Comparison comparison = compare(kA, kB, {});
  const MatchedCosts& least = at(comparison, 0);
  CHECK(least.violation == 0.001);
  CHECK(least.a->point == "few");
  CHECK_FALSE(least.b.has_value());
  CHECK_FALSE(least.ratio.has_value());
  CHECK_FALSE(least.difference.has_value());
}

TEST_CASE("the last level is that of A as shipped") {
  const Comparison comparison = compare(kA, kB, {});
  const MatchedCosts& shipped = at(comparison, 3);
  CHECK(shipped.shipped);
  CHECK(shipped.violation == doctest::Approx(0.01));
  CHECK(shipped.a->point == "some");
  CHECK(shipped.b->point == "dear");
}

TEST_CASE("a group of policies has no shipped setting") {
  CHECK(compare(kB, kA, {}).resources[0].levels.size() == 3);
}

TEST_CASE("executions are resampled in pairs: a constant difference has no width") {
  Sweep a{"a", {{"x", {sums(3, 0), sums(6, 0)}, {}}}, 0};
  Sweep b{"b", {{"y", {sums(4, 0), sums(7, 0)}, {}}}, 0};
  const Comparison comparison = compare(a, b, {});
  const MatchedCosts& level = at(comparison, 1);
  REQUIRE(level.difference);
  CHECK(level.difference->low == doctest::Approx(-0.1));
  CHECK(level.difference->high == doctest::Approx(-0.1));
}

TEST_CASE("a sweep against itself costs the same everywhere") {
  const Comparison comparison = compare(kA, kA, {});
  for (const MatchedCosts& level : comparison.resources.at(0).levels) {
    CHECK(level.ratio == 1.0);
    CHECK(level.difference == Interval{0, 0});
  }
}

TEST_CASE("the cheapest point of a level may be on it, not beyond") {
  const ParetoPoint points[] = {{0.001, 7}, {0.01, 5}, {0.0100001, 1}};
  CHECK(cheapest_within(points, 0.01) == 1);
  CHECK(cheapest_within(points, 0.001) == 0);
  CHECK(cheapest_within(points, 1) == 2);
}

TEST_CASE("no point within a level is absent, not the nearest") {
  const ParetoPoint points[] = {{0.02, 7}};
  CHECK_FALSE(cheapest_within(points, 0.01).has_value());
}

TEST_CASE("the one with fewest violations of equally cheap points counts") {
  const ParetoPoint points[] = {{0.02, 7}, {0.01, 7}, {0.01, 7}};
  CHECK(cheapest_within(points, 0.05) == 1);
}
