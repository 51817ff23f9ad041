#include "lab/replay/pareto.h"

#include <doctest/doctest.h>

using namespace cgphase;

TEST_CASE("the front has the points that none beats in both, by rising violations") {
  const ParetoPoint points[] = {{0.05, 1}, {0, 9}, {0.02, 5}, {0.03, 6}, {0.01, 9}, {0.05, 2}};
  CHECK(pareto_front(points) == std::vector<std::size_t>{1, 2, 0});
}

TEST_CASE("the front has the first of equal points") {
  const ParetoPoint points[] = {{0.1, 1}, {0.1, 1}};
  CHECK(pareto_front(points) == std::vector<std::size_t>{0});
}

TEST_CASE("without points there is no front") { CHECK(pareto_front({}).empty()); }

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
