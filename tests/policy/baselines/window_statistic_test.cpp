#include "policy/baselines/window_statistic.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace cgphase;

TEST_CASE("an empty window has no statistic") {
  const WindowStatistic window;
  CHECK_FALSE(window.maximum().has_value());
  CHECK_FALSE(window.mean_plus_deviations(2).has_value());
}

TEST_CASE("a window's mean, deviation and maximum are those of its samples") {
  WindowStatistic window;
  for (const double value : {2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0}) window.add(0, value);
  CHECK(window.maximum() == 9);
  CHECK(window.mean_plus_deviations(0) == doctest::Approx(5));
  CHECK(window.mean_plus_deviations(2) == doctest::Approx(9));  // deviation 2
}

TEST_CASE("a window drops samples up to the given time") {
  WindowStatistic window;
  window.add(1, 9);
  window.add(2, 3);
  window.add(3, 5);
  window.drop_until(1);
  CHECK(window.maximum() == 5);
  CHECK(window.mean_plus_deviations(1) == doctest::Approx(5));  // mean 4, deviation 1
  window.drop_until(3);
  CHECK(window.size() == 0);
}

TEST_CASE("equal values have a deviation of zero, even if they are large") {
  WindowStatistic window;
  for (int i = 0; i < 1000; ++i) {
    window.add(i, 123456789012.375);
    window.drop_until(i - 600);
  }
  CHECK(window.mean_plus_deviations(2) == 123456789012.375);
}

TEST_CASE("a moving window always agrees with its definition") {
  WindowStatistic window;
  std::vector<double> all;
  for (int i = 0; i < 500; ++i) {
    all.push_back((i * 7919) % 101);
    window.add(i, all.back());
    window.drop_until(i - 60);
    const auto begin = all.end() - std::min(60, i + 1);
    double mean = 0, squares = 0;
    for (auto at = begin; at != all.end(); ++at) mean += *at;
    mean /= static_cast<double>(all.end() - begin);
    for (auto at = begin; at != all.end(); ++at) squares += (*at - mean) * (*at - mean);
    const double deviation = std::sqrt(squares / static_cast<double>(all.end() - begin));
    REQUIRE(window.maximum() == *std::max_element(begin, all.end()));
    REQUIRE(*window.mean_plus_deviations(2) == doctest::Approx(mean + 2 * deviation));
  }
}

TEST_CASE("a window keeps 36,000 samples; a further one drops the oldest") {
  WindowStatistic window;
  window.add(0, 2);
  for (std::size_t i = 1; i < WindowStatistic::kMostSamples; ++i) window.add(1, 1);
  CHECK(window.maximum() == 2);
  window.add(1, 1);
  CHECK(window.size() == WindowStatistic::kMostSamples);
  CHECK(window.maximum() == 1);
  CHECK(window.mean_plus_deviations(2) == doctest::Approx(1));
}

TEST_CASE("a window drops samples at the given maximum, and never without one") {
  WindowStatistic two(2), any(WindowStatistic::kAnySamples);
  for (const double value : {9.0, 1.0, 2.0}) two.add(0, value);
  CHECK(two.size() == 2);
  CHECK(two.maximum() == 2);
  any.add(0, 9);
  for (std::size_t i = 0; i < WindowStatistic::kMostSamples; ++i) any.add(0, 1);
  CHECK(any.size() == WindowStatistic::kMostSamples + 1);
  CHECK(any.maximum() == 9);
}

TEST_CASE("a window ignores values that are not finite") {
  WindowStatistic window;
  window.add(0, std::numeric_limits<double>::quiet_NaN());
  window.add(0, std::numeric_limits<double>::infinity());
  CHECK(window.size() == 0);
}
