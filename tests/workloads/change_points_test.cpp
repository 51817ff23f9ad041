#include "tests/workloads/change_points.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace cgphase::workloads;
using Starts = std::vector<std::size_t>;

TEST_CASE("change points: a step is cut where it is, if it gains more than the penalty") {
  const std::vector<double> points{0, 0, 0, 0, 3, 3};
  // 4 * 2 / 6 * 9 = 12.
  CHECK(segments(points, 1, 11.9) == Starts{0, 4});
  CHECK(segments(points, 1, 12.1) == Starts{0});
}

TEST_CASE("change points: both parts are cut further") {
  const std::vector<double> points{0, 0, 0, 5, 5, 5, 50, 50, 50, 40, 40, 40};
  CHECK(segments(points, 1, 1) == Starts{0, 3, 6, 9});
  // 3 * 3 / 6 * 25 = 37.5 and * 100 = 150 for the inner steps.
  CHECK(segments(points, 1, 100) == Starts{0, 6, 9});
}

TEST_CASE("change points: dimensions add up") {
  const std::vector<double> points{0, 0, 0, 0, 3, 3, 3, 3};
  CHECK(segments(points, 2, 17) == Starts{0, 2});  // 1 * 18
  CHECK(segments(points, 2, 19) == Starts{0});
}

TEST_CASE("change points: a sequence of equal points, or of one, is one segment") {
  CHECK(segments(std::vector<double>(10, 2.0), 1, 0) == Starts{0});
  CHECK(segments(std::vector<double>{2.0}, 1, 0) == Starts{0});
}

TEST_CASE("change points: the penalty is Schwarz's, of a noise that a step does not move") {
  // The differences are 1 except at the step: a variance of 1 / (2 * 0.4549).
  const std::vector<double> points{0, 1, 0, 1, 0, 1, 100, 101, 100, 101};
  CHECK(segment_penalty(points, 1) == doctest::Approx(2 * std::log(10) / 0.909872));
  // A second dimension without noise halves it; it has its own mean.
  std::vector<double> both;
  for (const double point : points) both.insert(both.end(), {point, 7});
  CHECK(segment_penalty(both, 2) == doctest::Approx(3 * std::log(10) / 0.909872 / 2));
  CHECK(segment_penalty(std::vector<double>(10, 7.0), 1) == doctest::Approx(0.02 * std::log(10)));
  CHECK(segment_penalty(std::vector{3.0}, 1) == 0);
}
