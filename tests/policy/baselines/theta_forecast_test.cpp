#include "policy/baselines/theta_forecast.h"

#include <doctest/doctest.h>

using namespace cgphase;

namespace {

constexpr ThetaSettings kHalf{0.5};

// `count` values of 1, 1, 1, 5, 1, 1, 1, 5, ...
std::vector<double> every_fourth(int count) {
  std::vector<double> series;
  for (int i = 0; i < count; ++i) series.push_back(i % 4 == 3 ? 5 : 1);
  return series;
}

}  // namespace

TEST_CASE("a constant series has a constant forecast") {
  const std::vector<double> series(30, 2.0);
  for (const double value : theta_forecast(series, 1, 3, {})) CHECK(value == doctest::Approx(2));
}

TEST_CASE("a line is smoothed and drifts by half its slope") {
  // Smoothing 0.5 over 1, 2, 3, 4: levels 1, 1.5, 2.25, 3.125. Slope 1, so half the drift is 0.5;
  // one step ahead: 3.125 + 0.5 x (1 - 0.5^4) / 0.5 = 4.0625, each further one 0.5 more.
  const std::vector<double> series{1, 2, 3, 4};
  const auto forecast = theta_forecast(series, 1, 2, kHalf);
  CHECK(forecast[0] == doctest::Approx(4.0625));
  CHECK(forecast[1] == doctest::Approx(4.5625));
}

TEST_CASE("no forecast is below zero") {
  const std::vector<double> series{9, 6, 3, 0, 0, 0};
  for (const double value : theta_forecast(series, 1, 50, kHalf)) CHECK(value >= 0);
}

TEST_CASE("seasonal ratios are relative to the moving average") {
  // Any four neighbours, the ends half: 8 / 4 = 2. So 1 / 2 and 5 / 2, whose mean is 1.
  const auto ratios = seasonal_ratios(every_fourth(12), 4);
  REQUIRE(ratios.size() == 4);
  for (int i = 0; i < 3; ++i) CHECK(ratios[static_cast<std::size_t>(i)] == doctest::Approx(0.5));
  CHECK(ratios[3] == doctest::Approx(2.5));
}

TEST_CASE("a period of one has no season, and neither has an idle series") {
  CHECK(seasonal_ratios(every_fourth(12), 1) == std::vector<double>{1});
  CHECK(seasonal_ratios(std::vector<double>(12, 0.0), 3) == std::vector<double>{1, 1, 1});
}

TEST_CASE("a season continues at the position where the series ends") {
  // Deseasonalised, the series is 2 throughout. 14 values end within the period.
  const auto forecast = theta_forecast(every_fourth(14), 4, 4, {});
  CHECK(forecast[0] == doctest::Approx(1));
  CHECK(forecast[1] == doctest::Approx(5));
  CHECK(forecast[2] == doctest::Approx(1));
  CHECK(forecast[3] == doctest::Approx(1));
}

TEST_CASE("the period of a pattern is found") {
  CHECK(find_period(every_fourth(64), {}) == 4);
}

TEST_CASE("a series that hardly varies has no period") {
  std::vector<double> series;
  for (int i = 0; i < 64; ++i) series.push_back(10 + (i * 37 % 11) / 11.0);
  CHECK(find_period(series, {}) == 1);
}

TEST_CASE("no period is searched in fewer than 24 values") {
  CHECK(find_period(every_fourth(23), {}) == 1);
  CHECK(find_period(every_fourth(24), {}) == 4);
}
